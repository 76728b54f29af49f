// Which removed line became which added one, and which words of it changed.
import { inlineLocations } from "./locations.js";

/** @typedef {import("./layout.js").Piece} Piece */
/** @typedef {import("./types.js").Syntax} Syntax */

const mostCells = 4_000;
const alike = 0.5;

/**
 * Splits a changed run so that lines that answer each other stand side by side.
 * @param {string[]} before
 * @param {string[]} after
 * @param {Piece} run
 * @returns {Piece[]}
 */
export function pairLines(before, after, run) {
  const [n, m] = [run.a[1] - run.a[0], run.b[1] - run.b[0]];
  if (!n || !m || n * m > mostCells) return [run];
  const pairs = bestPairs(before.slice(...run.a).map(words), after.slice(...run.b).map(words));
  /** @type {Piece[]} */
  const out = [];
  let [a, b] = [run.a[0], run.b[0]];
  const gap = /** @param {number} i @param {number} j */ (i, j) => {
    if (i > a || j > b) out.push({ ...run, a: [a, i], b: [b, j] });
  };
  for (const [i, j] of pairs) {
    const [left, right] = [run.a[0] + i, run.b[0] + j];
    gap(left, right);
    const last = out.at(-1);
    if (last?.paired && last.a[1] === left && last.b[1] === right) {
      last.a[1]++;
      last.b[1]++;
    } else out.push({ ...run, a: [left, left + 1], b: [right, right + 1], paired: true });
    [a, b] = [left + 1, right + 1];
  }
  gap(run.a[1], run.b[1]);
  return out;
}

/**
 * The pairs, in order, whose likeness sums highest.
 * @param {string[][]} left
 * @param {string[][]} right
 * @returns {[number, number][]}
 */
function bestPairs(left, right) {
  const width = right.length + 1;
  const best = new Float32Array((left.length + 1) * width);
  const score = new Float32Array(best.length);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      const at = i * width + j;
      score[at] = likeness(left[i], right[j]);
      const joined = score[at] >= alike ? score[at] + best[at + width + 1] : 0;
      best[at] = Math.max(joined, best[at + width], best[at + 1]);
    }
  }
  /** @type {[number, number][]} */
  const pairs = [];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const at = i * width + j;
    if (score[at] >= alike && best[at] === Math.fround(score[at] + best[at + width + 1])) pairs.push([i++, j++]);
    else if (best[at] === best[at + width]) i++;
    else j++;
  }
  return pairs;
}

/** @param {string} line */
function words(line) {
  return line.replace(/ loc\(.*$|,? !dbg !\d+/, "").match(/[\w.$]+/g) ?? [];
}

/** @param {string[]} a @param {string[]} b @returns {number} the share of words that both have, 0 to 1 */
function likeness(a, b) {
  if (!a.length || !b.length) return 0;
  const left = new Map();
  for (const word of a) left.set(word, (left.get(word) ?? 0) + 1);
  let both = 0;
  for (const word of b) {
    const spare = left.get(word);
    if (!spare) continue;
    left.set(word, spare - 1);
    both++;
  }
  return (2 * both) / (a.length + b.length);
}

const longest = 400;
/** @typedef {{text: string, mask: string, from: number, to: number}} Word */

/**
 * The columns that differ between two lines. Names of values and labels count only where nothing else differs.
 * @param {string} before
 * @param {string} after
 * @param {Syntax} syntax
 * @returns {{a: [number, number][], b: [number, number][]}} empty where the lines share too little to say
 */
export function changedWords(before, after, syntax) {
  const [a, b] = [tokenize(before, syntax), tokenize(after, syntax)];
  let start = 0;
  while (start < a.length && start < b.length && a[start].mask === b[start].mask) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1].mask === b[endB - 1].mask) endA--, endB--;
  const [restA, restB] = [a.slice(start, endA), b.slice(start, endB)];
  if (!restA.length && !restB.length) return changedNames(a, b);
  if (restA.length > longest || restB.length > longest) return { a: join(restA), b: join(restB) };
  const keep = common(restA, restB);
  return { a: join(restA.filter((_, at) => !keep.a.has(at))), b: join(restB.filter((_, at) => !keep.b.has(at))) };
}

/**
 * Of lines that differ in names alone, the operands that are named otherwise; what they define is no change.
 * @param {Word[]} a
 * @param {Word[]} b
 */
function changedNames(a, b) {
  const after = a.findIndex((word) => word.text === "=");
  const differ = a.map((word, at) => at > after && word.text !== b[at].text);
  return { a: join(a.filter((_, at) => differ[at])), b: join(b.filter((_, at) => differ[at])) };
}

/** @param {string} line @param {Syntax} syntax @returns {Word[]} */
function tokenize(line, syntax) {
  const skip = inlineLocations(line, syntax);
  /** @type {Word[]} */
  const out = [];
  for (const { 0: text, index: from } of line.matchAll(/[%#!@^][\w.$-]+(?:[:#]\d+)?|[\w.$]+|\s+|./g)) {
    if (skip.some(([low, high]) => from >= low && from < high)) continue;
    out.push({ text, mask: /^[%^]\w/.test(text) ? text[0] : text, from, to: from + text.length });
  }
  return out;
}

/** @param {Word[]} a @param {Word[]} b the longest common subsequence, as indices */
function common(a, b) {
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      best[at] = a[i].mask === b[j].mask ? best[at + width + 1] + 1 : Math.max(best[at + width], best[at + 1]);
    }
  }
  const keep = { a: new Set(), b: new Set() };
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i].mask === b[j].mask) {
      keep.a.add(i++);
      keep.b.add(j++);
    } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return keep;
}

/** @param {Word[]} list @returns {[number, number][]} */
function join(list) {
  /** @type {[number, number][]} */
  const spans = [];
  for (const { from, to, text } of list) {
    const last = spans.at(-1);
    if (last && last[1] === from) last[1] = to;
    else if (text.trim()) spans.push([from, to]);
  }
  return spans;
}
