// Aligns two texts whose alignment the file does not carry: lines that read alike with their names masked. Unlike the
// server's (pipelines/analysis/diff.py) it follows no names. Unique lines are anchors (patience diff); what stands
// between them is aligned by its longest common subsequence while that is cheap.
import { inlineLocations, locationRanges } from "../trace/locations.js";

/** @typedef {import("../trace/types.js").Op} Op */
/** @typedef {import("../trace/types.js").Syntax} Syntax */
/** @typedef {[a: number, b: number]} Pair lines from 0 */

/** Cells of one table, and of all tables of a diff; past it runs stay unaligned. */
const tableCells = 1_000_000;
const allCells = 20_000_000;

/**
 * @param {string[]} before
 * @param {string[]} after
 * @param {Syntax} syntax
 * @returns {import("../trace/types.js").Diff}
 */
export function align(before, after, syntax) {
  const keys = new Map();
  const [a, b] = [new Side(before, syntax, keys), new Side(after, syntax, keys)];
  const aligner = new Aligner(a.keys, b.keys);
  aligner.run();
  const pairs = aligner.pairs.map(([i, j]) => /** @type {Pair} */ ([a.code[i], b.code[j]]));
  const ops = Array.from(walk(a, b, pairs));
  const renamed = ops.reduce((sum, [kind, i1, i2]) => sum + (kind === 1 ? i2 - i1 : 0), 0);
  const matched = aligner.pairs.length;
  return { ops, plus: b.code.length - matched, minus: a.code.length - matched, renamed, fallback: aligner.spent, rough: true };
}

class Side {
  /** @param {string[]} lines @param {Syntax} syntax @param {Map<string, number>} known numbers of masked lines, shared by both sides */
  constructor(lines, syntax, known) {
    this.lines = lines;
    this.syntax = syntax;
    this.location = new Uint8Array(lines.length);
    for (const [from, to] of locationRanges(lines, syntax)) this.location.fill(1, from, to);
    /** @type {number[]} the lines that are not only locations */
    this.code = [];
    /** @type {number[]} a number for each of them; those that read alike have one number */
    this.keys = [];
    lines.forEach((_, at) => {
      if (this.location[at]) return;
      const masked = mask(this.bare(at));
      const key = known.get(masked) ?? known.size;
      known.set(masked, key);
      this.code.push(at);
      this.keys.push(key);
    });
  }

  /** @param {number} at @returns {string} the line without its locations */
  bare(at) {
    const line = this.lines[at];
    let [out, from] = ["", 0];
    for (const [start, end] of inlineLocations(line, this.syntax)) {
      out += line.slice(from, start);
      from = end;
    }
    return out + line.slice(from);
  }
}

/** @param {string} line */
function mask(line) {
  return line.trim().replace(/[%^][\w.$-]+(?:[:#]\d+)?/g, "%").replace(/\$L__\w+|\.L_\w+|(?<=#)(?:map|loc|blocked|mma|shared|linear)?\d+/g, "");
}

class Aligner {
  /** @type {Pair[]} indices of keys, in order */
  pairs = [];
  #cells = allCells;
  /** Whether a run stayed unaligned for its size. */
  spent = false;

  /** @param {number[]} a @param {number[]} b */
  constructor(a, b) {
    this.a = a;
    this.b = b;
  }

  run() {
    /** @type {[number, number, number, number][]} what is still to align, the next at the end */
    const waiting = [[0, this.a.length, 0, this.b.length]];
    for (let next = waiting.pop(); next; next = waiting.pop()) waiting.push(...this.#range(...next).reverse());
    this.pairs.sort((x, y) => x[0] - y[0]);
  }

  /**
   * Pairs what it can, and returns what is left between its anchors.
   * @param {number} a1 @param {number} a2 @param {number} b1 @param {number} b2
   * @returns {[number, number, number, number][]}
   */
  #range(a1, a2, b1, b2) {
    const { a, b, pairs } = this;
    for (; a1 < a2 && b1 < b2 && a[a1] === b[b1]; a1++, b1++) pairs.push([a1, b1]);
    for (; a1 < a2 && b1 < b2 && a[a2 - 1] === b[b2 - 1]; a2--, b2--) pairs.push([a2 - 1, b2 - 1]);
    if (a1 === a2 || b1 === b2) return [];
    // Looking for anchors counts too: hostile texts have one on every level.
    this.#cells -= a2 - a1 + b2 - b1;
    const anchors = this.#cells > 0 ? this.#anchors(a1, a2, b1, b2) : [];
    if (!anchors.length) {
      this.#table(a1, a2, b1, b2);
      return [];
    }
    /** @type {[number, number, number, number][]} */
    const rest = [];
    for (const [i, j] of anchors) {
      pairs.push([i, j]);
      rest.push([a1, i, b1, j]);
      [a1, b1] = [i + 1, j + 1];
    }
    rest.push([a1, a2, b1, b2]);
    return rest.filter(([i1, i2, j1, j2]) => i1 < i2 && j1 < j2);
  }

  /** @param {number} a1 @param {number} a2 @param {number} b1 @param {number} b2 @returns {Pair[]} lines that both have once, in order */
  #anchors(a1, a2, b1, b2) {
    const [left, right] = [once(this.a, a1, a2), once(this.b, b1, b2)];
    /** @type {Pair[]} */
    const both = [];
    for (const [key, i] of left) {
      const j = right.get(key);
      if (i >= 0 && j !== undefined && j >= 0) both.push([i, j]);
    }
    return increasing(both);
  }

  /** @param {number} a1 @param {number} a2 @param {number} b1 @param {number} b2 */
  #table(a1, a2, b1, b2) {
    const [rows, width] = [a2 - a1, b2 - b1 + 1];
    const cells = (rows + 1) * width;
    if (cells > tableCells || cells > this.#cells) {
      this.spent = true;
      return;
    }
    this.#cells -= cells;
    const best = new Uint32Array(cells);
    for (let i = rows - 1; i >= 0; i--) {
      for (let j = width - 2; j >= 0; j--) {
        const at = i * width + j;
        best[at] = this.a[a1 + i] === this.b[b1 + j] ? best[at + width + 1] + 1 : Math.max(best[at + width], best[at + 1]);
      }
    }
    for (let i = 0, j = 0; i < rows && j < width - 1; ) {
      if (this.a[a1 + i] === this.b[b1 + j]) this.pairs.push([a1 + i++, b1 + j++]);
      else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
      else j++;
    }
  }
}

/** @param {number[]} keys @param {number} from @param {number} to @returns {Map<number, number>} where each key stands, -1 for more than once */
function once(keys, from, to) {
  /** @type {Map<number, number>} */
  const found = new Map();
  for (let at = from; at < to; at++) found.set(keys[at], found.has(keys[at]) ? -1 : at);
  return found;
}

/** @param {Pair[]} pairs ordered by their first @returns {Pair[]} a longest run of them whose second grows too */
function increasing(pairs) {
  /** @type {number[]} the pair that ends the best run of each length */
  const ends = [];
  const before = new Int32Array(pairs.length).fill(-1);
  pairs.forEach(([, j], at) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]][1] < j) low = middle + 1;
      else high = middle;
    }
    if (low) before[at] = ends[low - 1];
    ends[low] = at;
  });
  /** @type {Pair[]} */
  const run = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at]) run.push(pairs[at]);
  return run.reverse();
}

/** @param {Side} a @param {Side} b @param {Pair[]} pairs @returns {Generator<Op>} ops that cover both texts in order */
function* walk(a, b, pairs) {
  let [i, j] = [0, 0];
  /** @type {Op | null} */
  let run = null;
  for (const [left, right] of [...pairs, /** @type {Pair} */ ([a.lines.length, b.lines.length])]) {
    if (run && (left > i || right > j)) {
      yield run;
      run = null;
    }
    yield* between(a, b, [i, left], [j, right]);
    if (left === a.lines.length) break;
    const kind = a.bare(left) === b.bare(right) ? 0 : 1;
    if (run && run[0] !== kind) {
      yield run;
      run = null;
    }
    run = run ? [run[0], run[1], left + 1, run[3], right + 1] : [kind, left, left + 1, right, right + 1];
    [i, j] = [left + 1, right + 1];
  }
  if (run) yield run;
}

/** @param {Side} a @param {Side} b @param {[number, number]} ofA @param {[number, number]} ofB @returns {Generator<Op>} */
function* between(a, b, ofA, ofB) {
  const [left, right] = [pieces(a, ofA), pieces(b, ofB)];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [i1, i2, i3] = left[at] ?? [ofA[1], ofA[1], ofA[1]];
    const [j1, j2, j3] = right[at] ?? [ofB[1], ofB[1], ofB[1]];
    if (i2 > i1 || j2 > j1) yield [2, i1, i2, j1, j2];
    if (i3 > i2 || j3 > j2) yield [same(a, b, [i2, i3], [j2, j3]) ? 0 : 3, i2, i3, j2, j3];
  }
}

/** @param {Side} side @param {[number, number]} range @returns {[number, number, number][]} code, then locations: its start, what parts them, its end */
function pieces({ location }, [from, to]) {
  /** @type {[number, number, number][]} */
  const out = [];
  for (let at = from; at < to; ) {
    const start = at;
    while (at < to && !location[at]) at++;
    const middle = at;
    while (at < to && location[at]) at++;
    out.push([start, middle, at]);
  }
  return out;
}

/** @param {Side} a @param {Side} b @param {[number, number]} ofA @param {[number, number]} ofB */
function same(a, b, [i1, i2], [j1, j2]) {
  if (i2 - i1 !== j2 - j1) return false;
  for (let at = 0; at < i2 - i1; at++) if (a.lines[i1 + at] !== b.lines[j1 + at]) return false;
  return true;
}
