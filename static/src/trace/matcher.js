// Asks a worker what an expression matches. One that takes too long is ended, and given up.
import { Calls, SlowError } from "../lib/calls.js";

/** @typedef {import("./matching.js").Ranges} Ranges */
/** @typedef {import("./matching.js").Matched} Matched */

const longest = 3_000;
const mostKept = 5_000;

export class Matcher {
  /** @type {string | null} */
  #source = null;
  #turn = 0;
  /** @type {Map<string, Ranges>} by a line's text; none while they are asked for */
  #known = new Map();
  /** @type {string[]} */
  #wanted = [];

  /**
   * @param {() => Worker} start
   * @param {{onKnown: () => void, onFault: (message: string) => void}} on `onKnown` once there is more to draw
   */
  constructor(start, on) {
    this.calls = new Calls(start);
    this.on = on;
  }

  /** Takes another expression, or none. @param {string | null} source */
  use(source) {
    this.#turn++;
    this.#source = source;
    this.#known.clear();
    this.#wanted = [];
    // What it was asked before may be what takes for ever.
    if (this.calls.busy) this.calls.stop();
  }

  /** @param {string} line @returns {Ranges} what matches in a line, as far as it is known by now */
  ranges(line) {
    const known = this.#known.get(line);
    if (known) return known;
    if (this.#known.size >= mostKept) this.#known.clear();
    this.#known.set(line, []);
    if (this.#wanted.push(line) === 1) queueMicrotask(() => void this.#askRanges());
    return [];
  }

  /** @param {string} text @returns {Promise<Matched | null>} null where the expression was given up, or is another by now */
  matched(text) {
    return this.#ask("matched", { text });
  }

  async #askRanges() {
    const lines = this.#wanted;
    this.#wanted = [];
    if (!lines.length) return;
    /** @type {Ranges[] | null} */
    const found = await this.#ask("ranges", { lines });
    if (!found) return;
    lines.forEach((line, at) => this.#known.set(line, found[at]));
    if (found.some((each) => each.length)) this.on.onKnown();
  }

  /** @param {"matched" | "ranges"} call @param {object} about */
  async #ask(call, about) {
    const turn = this.#turn;
    if (this.#source === null) return null;
    try {
      const value = await this.calls.ask(call, { source: this.#source, ...about }, longest);
      return turn === this.#turn ? value : null;
    } catch (error) {
      if (turn !== this.#turn) return null;
      this.use(null);
      this.on.onFault(error instanceof SlowError ? "takes too long" : error instanceof Error ? error.message : String(error));
      return null;
    }
  }
}
