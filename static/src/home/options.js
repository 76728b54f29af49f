// The backend's options and the targets; an empty option is left to its default.
import { FieldError, readValue } from "./state.js";

/** @typedef {import("./state.js").Value} Value */

/** @param {HTMLElement} field */
function control(field) {
  const found = field.querySelector("input, select");
  if (!(found instanceof HTMLInputElement || found instanceof HTMLSelectElement)) throw new Error("an option without a control");
  return found;
}

export class Options {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    /** @type {Map<string, HTMLElement>} */
    this.fields = new Map();
    /** What was entered before the server knew the options. @type {Record<string, Value>} */
    this.early = {};
    form.addEventListener("input", () => this.mark());
  }

  /** Takes up the fields that the server put on the page. */
  collect() {
    this.fields.clear();
    for (const field of this.form.querySelectorAll("[data-option]")) {
      if (!(field instanceof HTMLElement)) continue;
      const name = field.dataset.option ?? "";
      control(field).dataset.field = `options.${name}`;
      this.fields.set(name, field);
    }
    this.fill(this.early);
  }

  /**
   * @returns {Record<string, Value>} what differs from the defaults
   * @throws {FieldError} where a number is none
   */
  read() {
    /** @type {Record<string, Value>} */
    const values = {};
    for (const [name, field] of this.fields) {
      const text = control(field).value.trim();
      if (!text) continue;
      const isInt = field.dataset.type === "int";
      if (isInt && !/^-?\d+$/.test(text)) throw new FieldError(`options.${name}`, `${name} is a whole number, not “${text}”.`);
      values[name] = field.dataset.type === "str" ? text : readValue(text);
    }
    return values;
  }

  /** Enters values and clears all others. @param {Record<string, Value>} values */
  fill(values) {
    this.early = values;
    for (const [name, field] of this.fields) {
      const element = control(field);
      const text = values[name] === undefined || values[name] === null ? "" : String(values[name]);
      element.value = text;
      if (element instanceof HTMLSelectElement && element.selectedIndex < 0) element.selectedIndex = 0;
    }
    this.mark();
  }

  /** Shows which options are no longer at their default, also where those are folded away. */
  mark() {
    for (const field of this.fields.values()) field.toggleAttribute("data-set", control(field).value.trim() !== "");
    for (const more of this.form.querySelectorAll("details.more")) {
      const set = more.querySelectorAll("[data-set]").length;
      const summary = more.querySelector("summary");
      if (summary) summary.textContent = set ? `more options, ${set} set` : "more options";
    }
  }
}

export class Targets {
  /**
   * @param {HTMLFormElement} form
   * @param {() => void} onChange
   */
  constructor(form, onChange) {
    this.boxes = [...form.querySelectorAll('input[name="targets"]')].filter((box) => box instanceof HTMLInputElement);
    for (const box of this.boxes) box.addEventListener("change", onChange);
  }

  /** @returns {string[]} */
  get chosen() {
    return this.boxes.filter((box) => box.checked).map((box) => box.value);
  }

  /** @returns {string[]} @throws {FieldError} where none is chosen */
  read() {
    if (!this.chosen.length) throw new FieldError("targets", "Choose at least one target.");
    return this.chosen;
  }

  /** @param {string[]} targets those that are not offered here are left out */
  fill(targets) {
    for (const box of this.boxes) box.checked = targets.includes(box.value);
  }
}
