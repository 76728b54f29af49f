// The right column: the pass with its exact argument, what it did in numbers, and what the compiler said.
import { el } from "../lib/dom.js";
import { bytes, count } from "../lib/format.js";
import { fileOf } from "./model.js";
import { changedDialects, signed } from "./changes.js";

/** @typedef {import("./model.js").Entry} Entry */
/** @typedef {import("./types.js").Diagnostic} Diagnostic */

const mostRemarks = 20;
const mostOperations = 24;

export class Card {
  /** @param {HTMLElement} host */
  constructor(host) {
    this.host = host;
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
      ...remarkPart(entry, model),
    );
  }
}

/** @param {Entry} entry @param {import("./model.js").Model} model @returns {Node[]} */
function remarkPart(entry, model) {
  const all = model.manifest?.diagnostics ?? [];
  const own = all.filter((item) => item.address === entry.address);
  const loose = all.filter((item) => item.address === null && item.severity !== "note");
  const list = own.length ? own : loose;
  if (!list.length) return [];
  const rows = list.slice(0, mostRemarks).map((item) => remark(item, model.manifest?.kernel));
  return [el("h3", {}, own.length ? "Remarks" : "Remarks of no one pass"), ...rows];
}

/** @param {Diagnostic} item @param {import("./types.js").Manifest["kernel"] | undefined} kernel */
function remark(item, kernel) {
  return el("div", { class: "remark", "data-severity": item.severity }, place(item, kernel), " ", item.message);
}

/** @param {Diagnostic} item @param {import("./types.js").Manifest["kernel"] | undefined} kernel */
function place({ file, line, address }, kernel) {
  if (!file) return null;
  const own = kernel && fileOf(kernel, { file });
  if (!line) return el("b", {}, file);
  if (own !== undefined) {
    const to = { href: `?pass=source${own ? `:${own}` : ""}#L${line}`, "data-source-line": line, "data-source-file": own };
    return el("a", to, own ? `${own} line ${line}` : `line ${line}`);
  }
  if (address && !address.includes(":")) {
    const to = { href: `?pass=${address}&view=text#L${line}`, "data-address": address, "data-line": line };
    return el("a", to, `${address} line ${line}`);
  }
  return el("b", {}, `${file}:${line}`);
}

/** @param {Entry} entry @returns {Node[]} */
function passPart({ pass, address, name }) {
  if (!pass) {
    if (address.endsWith(":0")) return [el("h3", {}, "Input"), el("p", {}, "The IR that the stage's first pass received.")];
    return [el("h3", {}, "Artifact"), el("p", {}, artifactWords[name] ?? "What the compilation left.")];
  }
  const facts = /** @type {[string, string | null][]} */ ([
    ["on", pass.anchor + (pass.function ? ` @${pass.function}` : "")],
    ["inside", pass.parent ? `${address.split(":")[0]}:${pass.parent}` : null],
    ["step of", pass.step ? pass.argument || pass.name : null],
  ]);
  return [
    el("h3", {}, "Pass"),
    pass.step ? el("p", {}, name) : argument(pass.argument),
    el("dl", { class: "pairs" }, ...facts.flatMap(([key, value]) => (value ? [pair(key, value)] : []))),
  ];
}

/** @param {string} key @param {string} value */
function pair(key, value) {
  return el("div", {}, el("dt", {}, key), el("dd", {}, el("code", {}, value)));
}

/** @type {Record<string, string>} */
const artifactWords = {
  "llvm-ir": "LLVM IR after LLVM's own passes, as the back end for the chip received it.",
  ptx: "PTX as the NVPTX back end wrote it and ptxas read it.",
  sass: "Machine code, disassembled.",
  amdgcn: "Machine code as assembly, as LLVM's AMDGPU back end wrote it; the hsaco is made from it.",
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

/**
 * @param {Entry} entry
 * @param {Entry | null} against
 * @param {import("./changes.js").Change[] | null} operations
 * @returns {Node[]}
 */
function changePart(entry, against, operations) {
  if (!entry.facts || !against?.facts || entry.syntax !== "mlir") return [];
  const dialects = changedDialects(against.facts.dialects, entry.facts.dialects);
  const out = /** @type {Node[]} */ ([]);
  const rows = dialects.map((each) => row(each.name, each.before, each.after, count));
  if (rows.length) out.push(el("h3", {}, "Dialects"), table(rows));
  if (operations?.length) {
    out.push(el("h3", {}, "Operations"), table(operations.slice(0, mostOperations).map(operationRow)));
  }
  return out;
}

/** @param {import("./changes.js").Change} change */
function operationRow({ name, before, after }) {
  const change = el(after > before ? "ins" : "del", {}, signed(after - before));
  return el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", { class: "num" }, change));
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
