// What the two sides of a diff, and the unified one, show for a layout.
import { Decoration } from "@codemirror/view";
import { pieceAt } from "./layout.js";
import { changedWords } from "./pairs.js";

/** @typedef {import("./layout.js").Piece} Piece */
/** @typedef {import("./texts.js").Doc} Doc */
/** @typedef {import("./paint.js").Painter} Painter */
/** @typedef {import("./blocks.js").Block} Block */
/** @typedef {import("./types.js").Syntax} Syntax */
/** @typedef {"a" | "b"} Side */

const classes = { renamed: "is-renamed", a: "is-removed", b: "is-added" };
/** @type {Record<string, Decoration>} */
const tints = Object.fromEntries(Object.values(classes).map((name) => [name, Decoration.line({ class: name })]));
const words = { a: Decoration.mark({ class: "is-removed-word" }), b: Decoration.mark({ class: "is-added-word" }) };

/** @param {Piece[]} pieces @param {Side} side @returns {Iterable<Block>} */
export function* sideBlocks(pieces, side) {
  for (const piece of pieces) {
    const [own, other] = side === "a" ? [piece.a, piece.b] : [piece.b, piece.a];
    const pad = piece.type === "lines" ? Math.max(0, other[1] - other[0] - (own[1] - own[0])) : 0;
    yield { at: own, type: piece.type, pad, key: piece.b[0], count: piece.count };
  }
}

/**
 * Words that changed in a pair of lines, computed when first seen.
 * @param {Doc} before
 * @param {Doc} after
 * @param {Syntax} syntax
 */
export function wordMarks(before, after, syntax) {
  /** @type {Map<string, ReturnType<typeof changedWords>>} */
  const known = new Map();
  return /** @param {number} a @param {number} b */ (a, b) => {
    const key = `${a} ${b}`;
    let found = known.get(key);
    if (!found) known.set(key, (found = changedWords(before.lines[a], after.lines[b], syntax)));
    return found;
  };
}

/** @param {Piece[]} pieces @param {Side} side @returns {(line: number) => string} the class of a line, from 1 */
export function sideTint(pieces, side) {
  return (line) => {
    const piece = pieceAt(pieces, side, line - 1);
    if (!piece || piece.type !== "lines") return "";
    return piece.kind === "changed" ? classes[side] : piece.kind === "renamed" ? classes.renamed : "";
  };
}

/**
 * @param {Piece[]} pieces
 * @param {Side} side
 * @param {ReturnType<typeof wordMarks>} marks
 * @returns {Painter}
 */
export function sidePainter(pieces, side, marks) {
  const tint = sideTint(pieces, side);
  return (line, out) => {
    const name = tint(line.number);
    if (!name) return;
    out.push(tints[name].range(line.from));
    const at = line.number - 1;
    const piece = pieceAt(pieces, side, at);
    if (!piece?.paired) return;
    const offset = at - piece[side][0];
    const spans = marks(piece.a[0] + offset, piece.b[0] + offset)[side];
    for (const [from, to] of spans) out.push(words[side].range(line.from + from, line.from + to));
  };
}

/**
 * A run of rows of the unified text: rows `u`, and the first line of each side that it shows, or -1.
 * @typedef {object} Run
 * @property {[number, number]} u
 * @property {Piece["type"]} type
 * @property {"same" | "renamed" | "removed" | "added" | "location"} kind
 * @property {number} a
 * @property {number} b
 * @property {number} count
 */

/**
 * @typedef {object} Unified
 * @property {Run[]} runs
 * @property {string[]} lines
 * @property {Map<number, number>} partners from a line of `a` to the line of `b` that answers it
 */

/**
 * Interleaves two texts: what a change removed, then what it added.
 * @param {Piece[]} pieces
 * @param {Doc} before
 * @param {Doc} after
 * @returns {Unified}
 */
export function unify(pieces, before, after) {
  /** @type {string[]} */
  const lines = [];
  /** @type {Run[]} */
  const runs = [];
  /** @type {Map<number, number>} */
  const partners = new Map();
  /** @param {Run["kind"]} kind @param {Piece} piece @param {Doc} doc @param {[number, number]} range */
  const write = (kind, piece, doc, range) => {
    if (range[1] === range[0]) return;
    const start = lines.length;
    for (let at = range[0]; at < range[1]; at++) lines.push(doc.lines[at]);
    const a = kind === "added" ? -1 : piece.a[0];
    const b = kind === "removed" ? -1 : piece.b[0];
    runs.push({ u: [start, lines.length], type: piece.type, kind, a, b, count: piece.count });
  };
  for (let at = 0; at < pieces.length; ) {
    const piece = pieces[at];
    if (piece.kind !== "changed") {
      write(piece.kind, piece, after, piece.b);
      at++;
      continue;
    }
    let end = at;
    while (end < pieces.length && pieces[end].kind === "changed") end++;
    const group = pieces.slice(at, end);
    for (const each of group) {
      for (let row = 0; each.paired && row < each.a[1] - each.a[0]; row++) partners.set(each.a[0] + row, each.b[0] + row);
    }
    const last = group[group.length - 1];
    write("removed", piece, before, [piece.a[0], last.a[1]]);
    write("added", piece, after, [piece.b[0], last.b[1]]);
    at = end;
  }
  return { runs, lines, partners };
}

/** @param {Unified} unified @returns {Iterable<Block>} */
export function* unifiedBlocks({ runs }) {
  for (const run of runs) yield { at: run.u, type: run.type, pad: 0, key: run.b, count: run.count };
}

/** @param {Unified} unified @returns {(row: number) => string} the class of a row, from 1 */
export function unifiedTint({ runs }) {
  const names = { ...classes, removed: classes.a, added: classes.b, same: "", location: "" };
  return (row) => {
    const run = pieceAt(runs, "u", row - 1);
    return run && run.type === "lines" ? names[run.kind] : "";
  };
}

/** @param {Unified} unified @param {ReturnType<typeof wordMarks>} marks @returns {Painter} */
export function unifiedPainter(unified, marks) {
  const tint = unifiedTint(unified);
  const back = new Map(Array.from(unified.partners, ([a, b]) => [b, a]));
  return (line, out) => {
    const name = tint(line.number);
    if (!name) return;
    out.push(tints[name].range(line.from));
    const run = pieceAt(unified.runs, "u", line.number - 1);
    if (!run || run.kind === "renamed") return;
    const side = run.kind === "removed" ? "a" : "b";
    const own = run[side] + line.number - 1 - run.u[0];
    const other = (side === "a" ? unified.partners : back).get(own);
    if (other === undefined) return;
    const spans = side === "a" ? marks(own, other).a : marks(other, own).b;
    for (const [from, to] of spans) out.push(words[side].range(line.from + from, line.from + to));
  };
}
