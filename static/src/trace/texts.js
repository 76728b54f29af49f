// Texts and alignments of a trace: fetched once, kept while they fit, fetched ahead when idle.
import { Text } from "@codemirror/state";
import { locationRanges } from "./locations.js";

/** @typedef {import("./types.js").Diff} Diff */
/** @typedef {import("./types.js").Syntax} Syntax */

/**
 * @typedef {object} Doc
 * @property {string[]} lines
 * @property {Text} text
 * @property {number} size in UTF-16 units
 * @property {[number, number][]} hidden lines that hold nothing but locations, from 0, half-open
 */

const budget = 48_000_000;
const diffBudget = 40;

/** @template V */
class Lru {
  /** @type {Map<string, {value: V, size: number}>} */
  #kept = new Map();
  #total = 0;

  /** @param {number} limit */
  constructor(limit) {
    this.limit = limit;
  }

  /** @param {string} key @returns {V | undefined} */
  get(key) {
    const found = this.#kept.get(key);
    if (!found) return undefined;
    this.#kept.delete(key);
    this.#kept.set(key, found);
    return found.value;
  }

  /** @param {string} key @param {V} value @param {number} size */
  set(key, value, size) {
    this.#total += size - (this.#kept.get(key)?.size ?? 0);
    this.#kept.delete(key);
    this.#kept.set(key, { value, size });
    for (const [old, { size: freed }] of this.#kept) {
      if (this.#total <= this.limit || old === key) break;
      this.#kept.delete(old);
      this.#total -= freed;
    }
  }
}

export class Texts {
  /** @type {Lru<Doc>} */
  #docs = new Lru(budget);
  /** @type {Lru<Diff>} */
  #diffs = new Lru(diffBudget);
  /** @type {Map<string, Promise<any>>} */
  #flying = new Map();

  /** @param {import("./types.js").Backend} backend */
  constructor(backend) {
    this.backend = backend;
  }

  /** @param {string} digest @param {Syntax} syntax @param {boolean} raw */
  peek(digest, syntax, raw) {
    return this.#docs.get(docKey(digest, syntax, raw));
  }

  /**
   * @param {string} digest
   * @param {Syntax} syntax
   * @param {boolean} raw
   * @returns {Promise<Doc>}
   */
  async doc(digest, syntax, raw) {
    const key = docKey(digest, syntax, raw);
    return this.#docs.get(key) ?? this.#once(key, async () => {
      const doc = readDoc(await this.backend.text(digest, syntax === "sass" && raw), syntax);
      this.#docs.set(key, doc, doc.size);
      return doc;
    });
  }

  /** @param {string} from @param {string} to @returns {Diff | undefined} */
  peekDiff(from, to) {
    return this.#diffs.get(`${from} ${to}`);
  }

  /** @param {string} from @param {string} to @returns {Promise<Diff>} */
  async diff(from, to) {
    const key = `${from} ${to}`;
    return this.#diffs.get(key) ?? this.#once(key, async () => {
      const diff = await this.backend.diff(from, to);
      this.#diffs.set(key, diff, 1);
      return diff;
    });
  }

  /** @template V @param {string} key @param {() => Promise<V>} start @returns {Promise<V>} */
  #once(key, start) {
    const flying = this.#flying.get(key);
    if (flying) return flying;
    const promise = start().finally(() => this.#flying.delete(key));
    this.#flying.set(key, promise);
    return promise;
  }
}

/** @param {string} digest @param {Syntax} syntax @param {boolean} raw */
const docKey = (digest, syntax, raw) => `${digest} ${syntax === "sass" && raw ? "raw" : syntax}`;

/** @param {string} text @param {Syntax} syntax @returns {Doc} */
function readDoc(text, syntax) {
  const lines = (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
  return { lines, text: Text.of(lines), size: text.length, hidden: locationRanges(lines, syntax) };
}
