// The right column: the pass with its exact argument, what it did in numbers, and what the compiler said.
import { el } from "../lib/dom.js";
import { bytes, count } from "../lib/format.js";
import { changedDialects, signed } from "./changes.js";

/** @typedef {import("./model.js").Entry} Entry */
/** @typedef {import("./types.js").Diagnostic} Diagnostic */

export class Card {
  /**
   * @param {HTMLElement} host
   * @param {(line: number) => void} onSource
   */
  constructor(host, onSource) {
    this.host = host;
    this.onSource = onSource;
  }

  /**
   * @param {import("./work.js").Plan} plan
   * @param {import("./model.js").Model} model
   * @param {import("./changes.js").Change[] | null} operations
   */
  show({ entry, against }, model, operations) {
    this.host.replaceChildren(
      ...passPart(entry),
      ...sizePart(entry, against),
      ...changePart(entry, against, operations),
      ...this.#remarks(entry, model),
    );
  }

  /** @param {Entry} entry @param {import("./model.js").Model} model */
  #remarks(entry, model) {
    const all = model.manifest?.diagnostics ?? [];
    const own = all.filter((item) => item.address === entry.address);
    const loose = all.filter((item) => item.address === null && item.severity !== "note");
    const list = own.length ? own : loose;
    if (!list.length) return [];
    return [el("h3", {}, own.length ? "This pass said" : "Remarks"), ...list.slice(0, 20).map((item) => this.#remark(item, model.manifest?.kernel.file))];
  }

  /** @param {Diagnostic} item @param {string | undefined} file */
  #remark(item, file) {
    const { line } = item;
    const place =
      line && item.file === file
        ? el("a", { href: `?pass=source#L${line}`, "data-source-line": line, onclick: (event) => this.#follow(event, line) }, `line ${line}`)
        : item.file && el("b", {}, line ? `${item.file}:${line}` : item.file);
    return el("div", { class: "remark", "data-severity": item.severity }, place || null, place ? " " : null, item.message);
  }

  /** @param {Event} event @param {number} line */
  #follow(event, line) {
    if (event instanceof MouseEvent && (event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.onSource(line);
  }
}

/** @param {Entry} entry @returns {Node[]} */
function passPart({ pass, address, name }) {
  if (!pass) {
    const words = address.endsWith(":0") ? "The IR that the stage's first pass received." : artifactWords[name] ?? "What the compilation left.";
    return [el("h3", {}, address.endsWith(":0") ? "Input" : "Artifact"), el("p", {}, words)];
  }
  const facts = /** @type {[string, string | null][]} */ ([
    ["on", pass.anchor + (pass.function ? ` @${pass.function}` : "")],
    ["inside", pass.parent ? `${address.split(":")[0]}:${pass.parent}` : null],
    ["step of", pass.step ? pass.argument || pass.name : null],
  ]);
  return [
    el("h3", {}, "Pass"),
    pass.step ? el("p", {}, name) : argument(pass.argument),
    el("dl", { class: "pairs" }, ...facts.filter(([, value]) => value).map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, el("code", {}, value))))),
  ];
}

/** @type {Record<string, string>} */
const artifactWords = {
  "llvm-ir": "LLVM IR after LLVM's own passes, as the NVPTX back end received it.",
  ptx: "PTX as the NVPTX back end wrote it and ptxas read it.",
  sass: "Machine code, disassembled.",
  "ptxas-log": "What ptxas printed.",
};

/** The exact argument, an option a line. @param {string} text */
function argument(text) {
  const match = /^([^{]*)\{(.*)\}\s*$/s.exec(text);
  const options = match ? match[2].trim().split(/\s+(?=[\w-]+=)/).filter(Boolean) : [];
  const block = el("div", { class: "argument" }, el("code", {}, match ? match[1] : text));
  for (const option of options) {
    const at = option.indexOf("=");
    block.append(el("code", { class: "option" }, el("span", { class: "muted" }, option.slice(0, at + 1)), option.slice(at + 1)));
  }
  const copy = el("button", { type: "button", class: "quiet", title: "copy the argument as the compiler prints it" }, "copy");
  copy.addEventListener("click", () => navigator.clipboard?.writeText(text).then(() => (copy.textContent = "copied")));
  block.append(copy);
  return block;
}

/** @param {Entry} entry @param {Entry | null} against @returns {Node[]} */
function sizePart({ facts }, against) {
  if (!facts) return [];
  const before = against?.facts;
  const total = /** @param {typeof facts} of */ (of) => Object.values(of.dialects).reduce((sum, value) => sum + value, 0);
  const rows = [row("lines", before?.lines, facts.lines, count)];
  if (total(facts)) rows.push(row("operations", before ? total(before) : undefined, total(facts), count));
  rows.push(row("size", before?.bytes, facts.bytes, bytes));
  return [el("h3", {}, "Size"), table(rows)];
}

/** @param {Entry} entry @param {Entry | null} against @param {import("./changes.js").Change[] | null} operations @returns {Node[]} */
function changePart(entry, against, operations) {
  if (!entry.facts || !against?.facts || entry.syntax !== "mlir") return [];
  const dialects = changedDialects(against.facts.dialects, entry.facts.dialects);
  const out = /** @type {Node[]} */ ([]);
  if (dialects.length) out.push(el("h3", {}, "Dialects"), table(dialects.map((each) => row(each.name, each.before, each.after, count))));
  if (operations?.length) {
    const rows = operations.slice(0, 24).map(({ name, before, after }) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", { class: "num" }, el(after > before ? "ins" : "del", {}, signed(after - before)))));
    out.push(el("h3", {}, "Operations"), table(rows));
  }
  return out;
}

/** @param {HTMLTableRowElement[]} rows */
function table(rows) {
  return el("table", {}, el("tbody", {}, ...rows));
}

/** @param {string} name @param {number | undefined} before @param {number} after @param {(value: number) => string} word */
function row(name, before, after, word) {
  const change = before === undefined || before === after ? null : el("span", { class: "was" }, `${word(before)} → `);
  return el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "num" }, change, word(after)));
}
