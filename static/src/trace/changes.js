// What a pass changed, as counts: operations by name where the diff is small, else by dialect.
import { count } from "../lib/format.js";

/** @typedef {{name: string, before: number, after: number}} Change */

const mostLines = 6_000;
const operation = /^\s*(?:%[^=]*= )?"?([a-z_]\w*(?:\.\w+)+)/;

/**
 * @param {{before: import("./texts.js").Doc, after: import("./texts.js").Doc, diff: import("./types.js").Diff}} sides
 * @returns {Change[] | null} operations whose number changed, the largest change first; null where the diff is too large
 */
export function changedOperations({ before, after, diff }) {
  if (diff.plus + diff.minus > mostLines) return null;
  /** @type {Map<string, Change>} */
  const found = new Map();
  const add = /** @param {string} line @param {"before" | "after"} side */ (line, side) => {
    const name = operation.exec(line)?.[1];
    if (!name) return;
    let change = found.get(name);
    if (!change) found.set(name, (change = { name, before: 0, after: 0 }));
    change[side]++;
  };
  for (const [kind, a1, a2, b1, b2] of diff.ops) {
    if (kind !== 2) continue;
    for (let at = a1; at < a2; at++) add(before.lines[at] ?? "", "before");
    for (let at = b1; at < b2; at++) add(after.lines[at] ?? "", "after");
  }
  return sorted(found.values());
}

/**
 * @param {Record<string, number>} before operations by dialect
 * @param {Record<string, number>} after
 * @returns {Change[]}
 */
export function changedDialects(before, after) {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return sorted(Array.from(names, (name) => ({ name, before: before[name] ?? 0, after: after[name] ?? 0 })));
}

/** @param {Iterable<Change>} changes */
function sorted(changes) {
  const size = /** @param {Change} change */ (change) => Math.abs(change.after - change.before);
  return Array.from(changes).filter(size).sort((a, b) => size(b) - size(a) || (a.name < b.name ? -1 : 1));
}

/** @param {number} value @returns {string} with its sign */
export function signed(value) {
  return value > 0 ? `+${count(value)}` : `−${count(-value)}`;
}
