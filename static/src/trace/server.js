// Where a trace page's data comes from while a server is there.
import { api, ApiError } from "../lib/api.js";
import { need } from "../lib/dom.js";

/** @typedef {import("./types.js").Backend} Backend */

/** @implements {Backend} */
export class Server {
  /** @param {string} id the trace's */
  constructor(id) {
    this.base = `/api/v1/traces/${encodeURIComponent(id)}`;
  }

  trace() {
    return api(this.base);
  }

  /** @param {string} digest @param {boolean} raw */
  async text(digest, raw) {
    const response = await fetch(`${this.base}/texts/${digest}${raw ? "?raw=1" : ""}`).catch(() => null);
    if (response?.ok) return response.text();
    if (!response) throw new ApiError(0, "unreachable", "Loupe does not answer. Is `loupe serve` still running?");
    throw new ApiError(response.status, "unreadable", `This text could not be read: the server answered ${response.status}.`);
  }

  /** @param {string} from @param {string} to */
  diff(from, to) {
    return api(`${this.base}/diff?${new URLSearchParams({ from, to })}`);
  }

  worker() {
    return new Worker(need('meta[name="trace-worker"]', HTMLMetaElement).content);
  }

  /** @param {string} q @param {boolean} regex */
  search(q, regex) {
    return api(`${this.base}/search?${new URLSearchParams({ q, regex: regex ? "1" : "0" })}`);
  }
}
