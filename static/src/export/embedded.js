// Where the page's data comes from without a server: what the file itself carries, read by a worker.
import { ApiError } from "../lib/api.js";
import { Model } from "../trace/model.js";

/** @typedef {import("./protocol.js").Request} Request */
/** @typedef {import("./protocol.js").Reply} Reply */

/** A search is bounded in the worker; only an expression that never returns takes longer. */
const longestSearch = 5_000;

/** @typedef {import("../trace/types.js").Backend} Backend */

/** @implements {Backend} */
export class Embedded {
  /** @type {Map<number, {request: Request, resolve: (value: any) => void, reject: (error: Error) => void}>} */
  #waiting = new Map();
  #next = 0;
  /** @type {Worker} */
  #worker;
  /** @type {Model | null} */
  #model = null;

  /** @param {{worker: string, archives: string[], extra: string}} parts the worker's script, the data in base64 */
  constructor({ worker, archives, extra }) {
    this.url = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
    this.data = { archives, extra };
    this.#worker = this.#start();
  }

  #start() {
    const worker = new Worker(this.url);
    worker.addEventListener("message", ({ data }) => this.#settle(data));
    worker.addEventListener("error", (event) => this.#fail(event.message));
    return worker;
  }

  /** @param {Reply} reply */
  #settle({ id, value, error }) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new ApiError(0, "unreadable", `This file could not be read: ${error}.`));
  }

  /** @param {string} [message] */
  #fail(message) {
    for (const id of this.#waiting.keys()) this.#settle({ id, error: message || "its worker did not start" });
  }

  /** @param {Request["call"]} call @param {unknown} argument @returns {Promise<any>} */
  #ask(call, argument) {
    return new Promise((resolve, reject) => {
      const request = { id: this.#next++, call, argument };
      this.#waiting.set(request.id, { request, resolve, reject });
      this.#worker.postMessage(request);
    });
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
  async search(q, regex) {
    const timer = setTimeout(() => this.#restart(), longestSearch);
    try {
      return await this.#ask("find", { places: this.#places(), q, regex });
    } finally {
      clearTimeout(timer);
    }
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

  /** Ends a search that does not return, and asks again for the rest. */
  #restart() {
    this.#worker.terminate();
    this.#worker = this.#start();
    void this.#ask("open", this.data);
    for (const [id, { request }] of Array.from(this.#waiting)) {
      if (request.call === "find") this.#settle({ id, error: "the search takes too long" });
      else if (request.call !== "open") this.#worker.postMessage(request);
    }
  }
}
