// Where the page's data comes from without a server: what the file itself carries, read by a worker.
import { ApiError } from "../lib/api.js";
import { Calls, SlowError } from "../lib/calls.js";
import { Model } from "../trace/model.js";

/** A search is bounded in the worker; only an expression that never returns takes longer. */
const longestSearch = 5_000;

/** @typedef {import("../trace/types.js").Backend} Backend */

/** @implements {Backend} */
export class Embedded {
  /** @type {Calls} */
  #calls;
  /** @type {Model | null} */
  #model = null;

  /** @param {{worker: string, archives: string[], extra: string}} parts the worker's script, the data in base64 */
  constructor({ worker, archives, extra }) {
    this.url = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
    this.data = { archives, extra };
    this.#calls = new Calls(() => this.worker(), { call: "open", argument: this.data });
  }

  worker() {
    return new Worker(this.url);
  }

  /** @param {string} call @param {unknown} argument @param {number | null} [limit] @returns {Promise<any>} */
  async #ask(call, argument, limit = null) {
    try {
      return await this.#calls.ask(call, argument, limit);
    } catch (error) {
      if (error instanceof SlowError) throw new ApiError(0, "slow", "The search takes too long.");
      throw new ApiError(0, "unreadable", `This file could not be read: ${error instanceof Error ? error.message : error}.`);
    }
  }

  async trace() {
    const trace = await this.#ask("open", this.data);
    this.#model = new Model(trace);
    return trace;
  }

  /** @param {string} digest @param {boolean} raw */
  text(digest, raw) {
    return this.#ask("text", { digest, raw });
  }

  /** @param {string} from @param {string} to */
  async diff(from, to) {
    const [before, after] = [this.#model?.find(from), this.#model?.find(to)];
    return this.#ask("diff", { before: before?.text, after: after?.text, syntax: after?.syntax });
  }

  /** @returns {Promise<Uint8Array<ArrayBuffer>>} the .loupe file */
  file() {
    return this.#ask("file", null);
  }

  /** @param {string} q @param {boolean} regex */
  search(q, regex) {
    return this.#ask("find", { places: this.#places(), q, regex }, longestSearch);
  }

  /** @returns {[string, string][]} each distinct text with the first address that shows it */
  #places() {
    /** @type {Map<string, string>} */
    const seen = new Map();
    for (const entry of [this.#model?.find("source"), ...(this.#model?.entries ?? [])]) {
      if (entry?.text && !seen.has(entry.text)) seen.set(entry.text, entry.address);
    }
    return Array.from(seen, ([digest, address]) => [address, digest]);
  }
}
