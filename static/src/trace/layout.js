// From the server's alignment to what stands where: context, folds, hidden locations, pairs of changed lines.
import { pairLines } from "./pairs.js";

/** @typedef {import("./types.js").Op} Op */
/** @typedef {import("./texts.js").Doc} Doc */

/**
 * A run of rows of both sides; `a` and `b` are line ranges from 0, half-open.
 * @typedef {object} Piece
 * @property {"lines" | "fold" | "hide"} type
 * @property {"same" | "renamed" | "changed" | "location"} kind
 * @property {[number, number]} a
 * @property {[number, number]} b
 * @property {boolean} paired a changed run whose lines answer each other one to one
 * @property {number} count of a fold: its lines
 */

/** Unchanged lines that stay in view beside a change. */
export const context = 3;
const smallestFold = 6;
/** @type {Piece["kind"][]} */
const kinds = ["same", "renamed", "changed", "location"];

/**
 * @param {import("./types.js").Diff} diff
 * @param {Doc} before
 * @param {Doc} after
 * @param {{locations: boolean, open: Set<number>}} options `open` holds the first lines (of `b`) of opened folds
 * @returns {Piece[]}
 */
export function layOut(diff, before, after, { locations, open }) {
  const runs = pieces(diff.ops, before, after, locations);
  const changes = runs.some((piece) => piece.kind === "changed");
  const quiet = /** @param {Piece} piece */ (piece) =>
    piece.type === "hide" || piece.kind === "same" || (piece.kind === "renamed" && changes);
  /** @type {Piece[]} */
  const out = [];
  for (let at = 0; at < runs.length; ) {
    let end = at;
    while (end < runs.length && quiet(runs[end])) end++;
    if (end === at) out.push(runs[at++]);
    else {
      fold(runs.slice(at, end), at > 0, end < runs.length, open, out);
      at = end;
    }
  }
  return out;
}

/** @param {Op[]} ops @param {Doc} before @param {Doc} after @param {boolean} locations @returns {Piece[]} */
function pieces(ops, before, after, locations) {
  /** @type {Piece[]} */
  const out = [];
  for (const [kind, a1, a2, b1, b2] of ops) {
    /** @type {Piece} */
    const piece = { type: "lines", kind: kinds[kind], a: clip(a1, a2, before), b: clip(b1, b2, after), paired: false, count: 0 };
    if (kind === 2) out.push(...pairLines(before.lines, after.lines, piece));
    else if (locations) out.push(piece);
    else if (kind === 3) out.push({ ...piece, type: "hide" });
    else out.push(...withoutHidden(piece, after.hidden));
  }
  return out;
}

/**
 * Hides the lines of a paired run that hold nothing but locations: those that agree are no location runs of their own.
 * @param {Piece} piece
 * @param {[number, number][]} hidden of `b`
 * @returns {Iterable<Piece>}
 */
function* withoutHidden(piece, hidden) {
  const shift = piece.a[0] - piece.b[0];
  const part = /** @param {Piece["type"]} type @param {number} from @param {number} to @returns {Piece} */ (type, from, to) => ({
    ...piece,
    type,
    a: [from + shift, to + shift],
    b: [from, to],
  });
  let at = piece.b[0];
  for (let next = firstAfter(hidden, at); next < hidden.length && hidden[next][0] < piece.b[1]; next++) {
    const [from, to] = [Math.max(at, hidden[next][0]), Math.min(piece.b[1], hidden[next][1])];
    if (from > at) yield part("lines", at, from);
    yield part("hide", from, to);
    at = to;
  }
  if (at < piece.b[1]) yield part("lines", at, piece.b[1]);
}

/** @param {[number, number][]} ranges in order @param {number} line @returns {number} the first that ends past the line */
function firstAfter(ranges, line) {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][1] <= line) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @param {number} from @param {number} to @param {Doc} doc @returns {[number, number]} */
function clip(from, to, doc) {
  return [Math.min(from, doc.lines.length), Math.min(to, doc.lines.length)];
}

/**
 * Writes a run of quiet pieces: context at the sides that touch a change, a fold between.
 * @param {Piece[]} run
 * @param {boolean} above whether a change stands above
 * @param {boolean} below
 * @param {Set<number>} open
 * @param {Piece[]} out
 */
function fold(run, above, below, open, out) {
  const total = run.reduce((sum, piece) => sum + visible(piece), 0);
  const [head, tail] = [above ? context : 0, below ? context : 0];
  if (total - head - tail < smallestFold) {
    out.push(...run);
    return;
  }
  const [first, rest] = split(run, head);
  const [middle, last] = split(rest, total - head - tail);
  const key = middle[0].b[0];
  out.push(...first);
  if (open.has(key)) out.push(...middle);
  else {
    const ends = middle[middle.length - 1];
    out.push({
      type: "fold",
      kind: "same",
      a: [middle[0].a[0], ends.a[1]],
      b: [key, ends.b[1]],
      paired: false,
      count: total - head - tail,
    });
  }
  out.push(...last);
}

/** @param {Piece} piece */
function visible(piece) {
  return piece.type === "hide" ? 0 : piece.b[1] - piece.b[0];
}

/**
 * Cuts a run after `lines` visible lines; quiet pieces are as long on one side as on the other.
 * @param {Piece[]} run
 * @param {number} lines
 * @returns {[Piece[], Piece[]]}
 */
function split(run, lines) {
  /** @type {Piece[]} */
  const first = [];
  for (let at = 0; at < run.length; at++) {
    const piece = run[at];
    if (lines === 0) return [first, run.slice(at)];
    const size = visible(piece);
    if (size <= lines) {
      first.push(piece);
      lines -= size;
      continue;
    }
    const [a, b] = [piece.a[0] + lines, piece.b[0] + lines];
    first.push({ ...piece, a: [piece.a[0], a], b: [piece.b[0], b] });
    return [first, [{ ...piece, a: [a, piece.a[1]], b: [b, piece.b[1]] }, ...run.slice(at + 1)]];
  }
  return [first, []];
}

/**
 * Finds the piece that holds a line, by halving.
 * @template {{[side in S]: [number, number]}} P
 * @template {string} S
 * @param {P[]} list in order, their ranges on that side adjacent
 * @param {S} side
 * @param {number} line from 0
 * @returns {P | null}
 */
export function pieceAt(list, side, line) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle][side][1] <= line) low = middle + 1;
    else high = middle;
  }
  const found = list[low];
  return found && line >= found[side][0] && line < found[side][1] ? found : null;
}

/** @param {Piece} piece @returns {number} the rows it takes, side by side */
export function rowsOf({ type, a, b }) {
  if (type === "hide") return 0;
  return type === "fold" ? 1 : Math.max(a[1] - a[0], b[1] - b[0]);
}
