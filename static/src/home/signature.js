// The table of a kernel's arguments: a field for each, what it is taken for, and who says so.
import { el } from "../lib/dom.js";
import { choices, firstValue, isValue, provenance, splitType } from "./guess.js";
import { FieldError, readValue } from "./state.js";

/** @typedef {import("./state.js").Kernel} Kernel */
/** @typedef {import("./state.js").KernelArgument} KernelArgument */
/** @typedef {import("./state.js").Constant} Constant */

export class Signature {
  /**
   * @param {HTMLElement} root
   * @param {(argument: KernelArgument) => void} onEdit after each change by the user
   */
  constructor(root, onEdit = () => {}) {
    this.root = root;
    this.onEdit = onEdit;
    /** What somebody gave, by argument name; an edit of the source loses nothing. @type {Map<string, string>} */
    this.entered = new Map();
    /** What fills the other fields. @type {import("./guess.js").Filler} */
    this.from = "guess";
    /** @type {Kernel | null} */
    this.kernel = null;
    /** @type {Map<string, () => void>} */
    this.refreshers = new Map();
    this.rows = el("div", { class: "arguments" });
    root.append(this.rows);
  }

  /**
   * Shows a kernel's arguments.
   * @param {Kernel | null} kernel
   * @param {import("./guess.js").Filler} from
   */
  show(kernel, from) {
    const same = from === this.from && JSON.stringify(kernel?.arguments) === JSON.stringify(this.kernel?.arguments);
    this.kernel = kernel;
    this.from = from;
    if (same && this.rows.childElementCount) return this.refresh();
    this.refreshers.clear();
    const list = kernel?.arguments ?? [];
    this.rows.replaceChildren(...[...list.filter((item) => !item.constexpr), ...list.filter((item) => item.constexpr)].map((item) => this.row(item)));
    if (kernel && !list.length) this.rows.append(el("p", { class: "muted" }, `${kernel.name} takes no arguments.`));
  }

  refresh() {
    for (const refresh of this.refreshers.values()) refresh();
  }

  /** Whether any argument of the kernel on show is given. */
  get given() {
    return (this.kernel?.arguments ?? []).some(({ name }) => this.entered.has(name));
  }

  /** Whether each of them is, as far as it can be. */
  get complete() {
    return (this.kernel?.arguments ?? []).every(({ name, guess }) => this.entered.has(name) || guess?.origin !== "guessed");
  }

  /** Enters values, as the API and the command line write them. @param {Record<string, string>} values */
  fill(values) {
    this.entered = new Map(Object.entries(values));
    this.refresh();
  }

  /** Takes every guess for given. */
  confirm() {
    for (const { name, guess } of this.kernel?.arguments ?? []) {
      const text = firstValue(guess);
      if (text && guess?.origin === "guessed" && !this.entered.has(name)) this.entered.set(name, text);
    }
    this.refresh();
  }

  /** @param {KernelArgument} argument */
  row(argument) {
    const { name, constexpr, guess } = argument;
    const id = `arg-${name}`;
    const field = `${constexpr ? "constexprs" : "args"}.${name}`;
    const input = el("input", { id, class: "mono", autocomplete: "off", spellcheck: "false", "data-field": field, "aria-describedby": `${id}-from`, disabled: name.startsWith("*") });
    const box = el("input", { type: "checkbox", "aria-label": `${name} is divisible by 16` });
    const words = el("span", {});
    const promise = constexpr ? el("span", { class: "promise muted" }, "const") : el("label", { class: "promise", title: "The address or value is divisible by this" }, box, words);
    const from = el("span", { class: "from muted", id: `${id}-from` });
    const offered = choices(argument);
    const more = el("select", { class: "choices", tabindex: "-1", "aria-label": `Alternatives for ${name}` }, el("option", { value: "" }, ""), ...offered.map((text) => el("option", { value: text }, text)));
    let divisor = "16";
    const show = () => {
      const text = this.entered.get(name) ?? (this.from === "guess" ? firstValue(guess) : "");
      const [type, divisibility] = constexpr ? [text, null] : splitType(text);
      if (document.activeElement !== input) input.value = type;
      divisor = divisibility ?? "16";
      words.textContent = `÷${divisor.split(":")[0]}`;
      box.checked = divisibility !== null;
      box.disabled = type !== "" && !/^(\*\w+|[iu]\d+)$/.test(type);
      const { tag, why } = provenance(argument, this.from, this.entered.has(name));
      input.placeholder = why === "its heuristic computes it" ? "computed" : "";
      from.replaceChildren(...(tag ? [el("b", { class: "guessed" }, tag), ` ${why}`] : [why]));
      from.title = tag ? `${tag}: ${why}` : why;
    };
    const keep = () => {
      const type = input.value.trim();
      const divided = !constexpr && box.checked && /^(\*\w+|[iu]\d+)$/.test(type);
      this.entered.set(name, divided ? `${type}:${divisor}` : type);
      show();
      this.onEdit(argument);
    };
    /** @param {string} text */
    const choose = (text) => {
      input.value = text;
      if (!constexpr) box.checked = text.startsWith("*");
      keep();
    };
    input.addEventListener("input", keep);
    box.addEventListener("change", () => {
      if (!input.value) input.value = splitType(firstValue(guess))[0];
      keep();
    });
    more.addEventListener("change", () => {
      choose(more.value);
      more.value = "";
      input.focus();
    });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey || !offered.length) return;
      event.preventDefault();
      const at = offered.indexOf(input.value.trim());
      choose(offered[(at < 0 ? (step > 0 ? 0 : offered.length - 1) : at + step + offered.length) % offered.length]);
    });
    this.refreshers.set(name, show);
    show();
    return el("div", { class: "argument" }, el("label", { class: "mono", for: id, title: name }, name), el("span", { class: "field" }, input, more), promise, from);
  }

  /**
   * @returns {{args: Record<string, string>, constexprs: Record<string, Constant>}} what is given; the rest is guessed
   * @throws {FieldError} where a field is empty
   */
  read() {
    /** @type {Record<string, string>} */
    const args = {};
    /** @type {Record<string, Constant>} */
    const constexprs = {};
    for (const { name, constexpr, guess } of this.kernel?.arguments ?? []) {
      const text = this.entered.get(name)?.trim();
      if (text === undefined) continue;
      if (constexpr) {
        if (!text) throw new FieldError(`constexprs.${name}`, `${name} needs a value, such as ${guess?.value || "1024"}.`);
        constexprs[name] = guess?.kind === "function" && text !== "None" ? { function: text } : readValue(text);
      } else {
        if (!text) throw new FieldError(`args.${name}`, `${name} needs a type, such as *fp16 or i32.`);
        if (isValue(text)) constexprs[name] = readValue(text);
        else args[name] = text;
      }
    }
    return { args, constexprs };
  }
}
