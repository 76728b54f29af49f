// Search through all texts, bounded as the server's is (app/search.py).

const mostHits = 500;
const longestLine = 400;
const milliseconds = 3000;

/**
 * @param {[address: string, digest: string][]} places each distinct text once, in the pipeline's order
 * @param {(digest: string) => string} read
 * @param {string} q
 * @param {boolean} regex
 * @returns {import("../trace/types.js").Found}
 */
export function search(places, read, q, regex) {
  const pattern = new RegExp(regex ? q : q.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), q === q.toLowerCase() ? "i" : "");
  const deadline = performance.now() + milliseconds;
  /** @type {import("../trace/types.js").Hit[]} */
  const hits = [];
  for (const [address, digest] of places) {
    let number = 0;
    for (const line of read(digest).split("\n")) {
      number++;
      if (!pattern.test(line)) continue;
      if (hits.length === mostHits) return { hits, truncated: true };
      hits.push({ address, line: number, text: line.slice(0, longestLine) });
    }
    if (performance.now() > deadline) return { hits, truncated: true };
  }
  return { hits, truncated: false };
}
