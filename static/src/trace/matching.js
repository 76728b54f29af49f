// What an expression matches in lines, as a worker finds it.

/** @typedef {[from: number, to: number][]} Ranges columns of a line, in order */
/** @typedef {{count: number, lines: number[]}} Matched how often, and the lines that match, from 1 */

const mostCounted = 100_000;

/** @param {{source: string, lines: string[]}} asked @returns {Ranges[]} */
function ranges({ source, lines }) {
  const pattern = new RegExp(source, "gi");
  return lines.map((line) =>
    Array.from(line.matchAll(pattern), ({ 0: found, index }) => /** @type {[number, number]} */ ([index, index + found.length])).filter(([from, to]) => to > from),
  );
}

/** @param {{source: string, text: string}} asked @returns {Matched} bounded in what is counted */
function matched({ source, text }) {
  const pattern = new RegExp(source, "gi");
  /** @type {number[]} */
  const lines = [];
  let [count, number] = [0, 0];
  for (const line of text.split("\n")) {
    number++;
    const before = count;
    for (const [found] of line.matchAll(pattern)) if (found) count++;
    if (count > before) lines.push(number);
    if (count >= mostCounted) break;
  }
  return { count: Math.min(count, mostCounted), lines };
}

export const matching = { ranges, matched };
