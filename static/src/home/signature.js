// The table of a kernel's arguments: a type and a promise of divisibility for each, a value for each constexpr.
import { el } from "../lib/dom.js";
import { TYPES, guessType, guessValue } from "./guess.js";
import { FieldError, readValue } from "./state.js";

/** @typedef {import("./state.js").Kernel} Kernel */
/** @typedef {import("./state.js").KernelArgument} KernelArgument */

export class Signature {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** What was entered, by argument name, so that an edit of the source loses nothing. @type {Map<string, string>} */
    this.entered = new Map();
    /** @type {Kernel | null} */
    this.kernel = null;
    root.append(el("datalist", { id: "types" }, ...TYPES.map((type) => el("option", { value: type }))));
    this.rows = el("div", { class: "arguments" });
    root.append(this.rows);
  }

  /** Shows a kernel's arguments; what was entered under the same name stays. @param {Kernel | null} kernel */
  show(kernel) {
    const same = JSON.stringify(kernel?.arguments) === JSON.stringify(this.kernel?.arguments);
    this.kernel = kernel;
    if (same && this.rows.childElementCount) return;
    const list = kernel?.arguments ?? [];
    const runtime = list.filter((argument) => !argument.constexpr).map((argument) => this.typeRow(argument));
    const constants = list.filter((argument) => argument.constexpr).map((argument) => this.valueRow(argument));
    this.rows.replaceChildren(...runtime, ...constants);
    if (kernel && !list.length) this.rows.append(el("p", { class: "muted" }, `${kernel.name} takes no arguments.`));
  }

  /** Enters values, as the API and the command line write them. @param {Record<string, string>} values */
  fill(values) {
    this.entered = new Map(Object.entries(values));
    const kernel = this.kernel;
    this.kernel = null;
    this.show(kernel);
  }

  /** @param {KernelArgument} argument */
  typeRow(argument) {
    const { name } = argument;
    const [type, divisibility, range] = (this.entered.get(name) ?? guessType(argument)).split(":");
    const id = `arg-${name}`;
    const input = el("input", { id, class: "mono", list: "types", value: type, autocomplete: "off", spellcheck: "false", "data-field": `args.${name}` });
    const box = el("input", { type: "checkbox", checked: divisibility !== undefined, "aria-label": `${name} is divisible by 16` });
    const keep = () => {
      box.disabled = input.value.trim() === "None" || /^\*?(fp|bf)\d+$/.test(input.value) && !input.value.startsWith("*");
      this.entered.set(name, input.value.trim() + (box.checked && !box.disabled ? `:${divisibility ?? 16}${range ? `:${range}` : ""}` : ""));
    };
    input.addEventListener("input", keep);
    box.addEventListener("change", keep);
    keep();
    const promise = el("label", { class: "promise", title: "The address or value is divisible by 16" }, box, `÷${divisibility ?? 16}`);
    return el("div", { class: "argument" }, el("label", { class: "mono", for: id, title: name }, name), input, promise);
  }

  /** @param {KernelArgument} argument */
  valueRow(argument) {
    const { name } = argument;
    const id = `arg-${name}`;
    const value = this.entered.get(name) ?? guessValue(argument);
    const input = el("input", { id, class: "mono", value, autocomplete: "off", spellcheck: "false", "data-field": `constexprs.${name}` });
    input.addEventListener("input", () => this.entered.set(name, input.value));
    this.entered.set(name, value);
    return el("div", { class: "argument" }, el("label", { class: "mono", for: id, title: name }, name), input, el("span", { class: "promise muted" }, "const"));
  }

  /**
   * @returns {{args: Record<string, string>, constexprs: Record<string, import("./state.js").Value>}}
   * @throws {FieldError} where a field is empty
   */
  read() {
    /** @type {Record<string, string>} */
    const args = {};
    /** @type {Record<string, import("./state.js").Value>} */
    const constexprs = {};
    for (const { name, constexpr } of this.kernel?.arguments ?? []) {
      const text = this.entered.get(name)?.trim() ?? "";
      if (constexpr) {
        if (!text) throw new FieldError(`constexprs.${name}`, `${name} needs a value, such as 1024.`);
        constexprs[name] = readValue(text);
      } else {
        if (!text) throw new FieldError(`args.${name}`, `${name} needs a type, such as *fp16 or i32.`);
        args[name] = text;
      }
    }
    return { args, constexprs };
  }
}
