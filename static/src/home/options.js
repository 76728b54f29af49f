// The targets and their back ends' options; an empty option is left to its default.
import { el } from "../lib/dom.js";
import { FieldError, readValue } from "./state.js";

/** @typedef {import("./state.js").Value} Value */

/** @param {HTMLElement} field */
function control(field) {
  const found = field.querySelector("input, select");
  if (!(found instanceof HTMLInputElement || found instanceof HTMLSelectElement)) throw new Error("an option without a control");
  return found;
}

/** @param {unknown} value */
function word(value) {
  if (value === null || value === "") return "none";
  return typeof value === "boolean" ? (value ? "on" : "off") : String(value);
}

/**
 * Shows one option as some back ends have it, or hides what one of them lacks.
 * @param {HTMLElement} field
 * @param {string[]} backends
 * @param {Map<string, string>} vendors
 */
function offer(field, backends, vendors) {
  /** @type {Record<string, unknown>} */
  const defaults = JSON.parse(field.dataset.defaults ?? "{}");
  field.hidden = !backends.every((backend) => backend in defaults);
  if (field.hidden) return;
  const words = backends.map((backend) => word(defaults[backend]));
  const differ = new Set(words).size > 1;
  const shown = differ ? words.join(" or ") : (words[0] ?? "");
  const element = control(field);
  element.title = differ ? backends.map((backend, at) => `${words[at]} on ${vendors.get(backend)}`).join(", ") : "";
  if (element instanceof HTMLInputElement) element.placeholder = shown;
  else fillChoices(element, `default ${shown}`, choices(field, backends));
}

/** @param {HTMLElement} field @param {string[]} backends @returns {unknown[] | null} what all of them can take; null where fixed */
function choices(field, backends) {
  /** @type {Record<string, unknown[]>} */
  const values = JSON.parse(field.dataset.values ?? "{}");
  if (!Object.keys(values).length) return null;
  const [first, ...others] = backends.map((backend) => values[backend] ?? []);
  return (first ?? []).filter((value) => others.every((list) => list.includes(value)));
}

/** @param {HTMLSelectElement} select @param {string} none @param {unknown[] | null} values */
function fillChoices(select, none, values) {
  const first = select.options[0];
  if (first) first.textContent = none;
  if (!values) return;
  const kept = select.value;
  select.replaceChildren(...Array.from(select.options).slice(0, 1), ...values.map((value) => el("option", {}, String(value))));
  select.value = values.includes(kept) ? kept : "";
}

export class Options {
  /**
   * @param {HTMLFormElement} form
   * @param {{name: string, vendor: string}[]} backends
   */
  constructor(form, backends) {
    this.form = form;
    this.vendors = new Map(backends.map(({ name, vendor }) => [name, vendor]));
    /** Those of the chosen targets. @type {string[]} */
    this.backends = [];
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
    this.use(this.backends);
    this.fill(this.early);
  }

  /** Offers what all of some back ends have; what was entered for others waits, unsent. @param {string[]} backends */
  use(backends) {
    this.backends = backends;
    for (const field of this.fields.values()) offer(field, backends, this.vendors);
    const shared = this.form.querySelector("[data-options-shared]");
    if (shared instanceof HTMLElement) shared.hidden = backends.length < 2;
    this.mark();
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
      if (!text || field.hidden) continue;
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
      const set = more.querySelectorAll("[data-set]:not([hidden])").length;
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

  /** @returns {string[]} the back ends of what is chosen; all while nothing is */
  get backends() {
    const chosen = this.boxes.filter((box) => box.checked);
    return Array.from(new Set((chosen.length ? chosen : this.boxes).map((box) => box.dataset.backend ?? "")));
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
