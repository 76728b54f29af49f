// Search: marks and walks the matches in the text in view, and lists those of all passes.
import { ApiError } from "../lib/api.js";
import { debounce, el, need } from "../lib/dom.js";
import { count, plural } from "../lib/format.js";
import { Matcher } from "./matcher.js";

/** @typedef {import("./types.js").Hit} Hit */

/**
 * What is searched, and what to do with what is found.
 * @typedef {object} Searched
 * @property {() => import("@codemirror/state").Text} text the text in view
 * @property {() => number} line the line one stands on, from 1
 * @property {(query: ((line: string) => import("./matching.js").Ranges) | null) => void} onQuery what a line has to be marked
 * @property {() => void} onKnown once there is more to mark
 * @property {(line: number) => void} onLine a line of the text in view
 * @property {(hit: Hit) => void} onHit a line of any pass
 * @property {(address: string) => string} name what a pass is called
 */

const shownHits = 8;

export class Find {
  /** Whether there is something to search for. */
  query = false;
  #turn = 0;
  /** @type {import("@codemirror/state").Text | null} the text that `#matched` is about */
  #text = null;
  /** @type {Promise<import("./matching.js").Matched | null>} */
  #matched = Promise.resolve(null);

  /** @param {import("./types.js").Backend} backend @param {Searched} page */
  constructor(backend, page) {
    this.backend = backend;
    this.page = page;
    this.form = need("[data-find]", HTMLFormElement);
    this.field = need("input", HTMLInputElement, this.form);
    this.counted = need("[data-matches]", HTMLElement, this.form);
    this.regex = need("[data-regex]", HTMLButtonElement, this.form);
    this.list = need("#hits", HTMLElement);
    this.matcher = new Matcher(() => backend.worker(), { onKnown: () => page.onKnown(), onFault: (message) => this.#giveUp(message) });
    this.#wire();
  }

  #wire() {
    const everywhere = debounce(180, () => this.#everywhere());
    this.field.addEventListener("input", () => {
      this.#read();
      everywhere();
    });
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.regex.addEventListener("click", () => {
      this.regex.setAttribute("aria-pressed", String(this.regex.getAttribute("aria-pressed") !== "true"));
      this.#read();
      everywhere();
      this.field.focus();
    });
    this.form.addEventListener("keydown", (event) => this.#onKey(event));
    this.field.addEventListener("focus", () => this.#open(Boolean(this.list.childElementCount)));
    document.addEventListener("pointerdown", (event) => {
      if (event.target instanceof Node && !this.form.contains(event.target)) this.#open(false);
    });
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      if (this.list.hidden || event.target !== this.field) this.clear();
      else this.#open(false);
    } else if (event.key === "Enter" && event.target === this.field) {
      this.#open(false);
      void this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const hits = /** @type {HTMLElement[]} */ (Array.from(this.list.querySelectorAll("a")));
      const at = hits.findIndex((hit) => hit === document.activeElement);
      const next = event.key === "ArrowDown" ? hits[at + 1] : (hits[at - 1] ?? this.field);
      next?.focus();
      event.preventDefault();
    }
  }

  focus() {
    this.field.focus();
    this.field.select();
  }

  clear() {
    this.field.value = "";
    this.field.blur();
    this.#read();
    this.#fill([], "");
  }

  /** Turns what is typed into a pattern; one that is not finished yet is no fault. */
  #read() {
    const text = this.field.value;
    const regex = this.regex.getAttribute("aria-pressed") === "true";
    const source = regex ? text : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const valid = isPattern(source);
    this.query = Boolean(text) && valid;
    if (valid) this.field.removeAttribute("aria-invalid");
    else this.field.setAttribute("aria-invalid", "true");
    this.matcher.use(this.query ? source : null);
    this.#text = null;
    this.counted.textContent = this.counted.title = "";
    this.page.onQuery(this.query ? (line) => this.matcher.ranges(line) : null);
    void this.recount();
  }

  /** Counts the matches in the text in view. */
  async recount() {
    if (!this.query) return;
    const found = await this.#inView();
    if (!found) return;
    this.counted.textContent = count(found.count);
    this.counted.title = `${plural(found.count, "match", "matches")} in this text`;
  }

  /** @returns {Promise<import("./matching.js").Matched | null>} what matches in the text in view */
  #inView() {
    const text = this.page.text();
    if (text !== this.#text) this.#matched = this.matcher.matched(text.toString());
    this.#text = text;
    return this.#matched;
  }

  /** An expression that costs too much marks nothing; it says so until it is changed. @param {string} message */
  #giveUp(message) {
    this.query = false;
    this.page.onQuery(null);
    this.field.setAttribute("aria-invalid", "true");
    this.counted.textContent = message;
    this.counted.title = `This expression ${message} on the text in view.`;
  }

  /** Goes to the next or previous line that matches. @param {1 | -1} direction */
  async step(direction) {
    if (!this.query) return;
    const lines = (await this.#inView())?.lines;
    if (!lines?.length) return;
    const here = this.page.line();
    if (direction > 0) return this.page.onLine(lines.find((line) => line > here) ?? lines[0]);
    const from = lines.findIndex((line) => line >= here);
    this.page.onLine(/** @type {number} */ (lines.at((from < 0 ? lines.length : from) - 1)));
  }

  async #everywhere() {
    const turn = ++this.#turn;
    const q = this.field.value;
    if (!this.query || q.length < 2) return this.#fill([], "");
    const regex = this.regex.getAttribute("aria-pressed") === "true";
    try {
      const { hits, truncated } = await this.backend.search(q, regex);
      if (turn !== this.#turn) return;
      const found = truncated ? `the first ${plural(hits.length, "line")}; narrow the search to see others` : "";
      const none = truncated ? "the search takes too long: nothing was found in the time it has" : "no line of any pass matches";
      this.#fill(hits, hits.length ? found : none);
    } catch (error) {
      if (turn === this.#turn) this.#fill([], error instanceof ApiError ? error.message : String(error));
    }
  }

  /** @param {Hit[]} hits @param {string} note */
  #fill(hits, note) {
    /** @type {Map<string, Hit[]>} */
    const groups = new Map();
    for (const hit of hits) groups.set(hit.address, [...(groups.get(hit.address) ?? []), hit]);
    const sections = Array.from(groups, ([address, list]) => {
      const words = el("small", {}, `${this.page.name(address)} · ${plural(list.length, "line")}`);
      const section = el("section", {}, el("h3", {}, address, " ", words));
      const rows = list.map((hit) => this.#hit(hit));
      section.append(...rows.slice(0, shownHits));
      if (rows.length <= shownHits) return section;
      const more = el("button", { type: "button", class: "quiet" }, `${count(rows.length - shownHits)} more`);
      more.addEventListener("click", () => more.replaceWith(...rows.slice(shownHits)));
      section.append(more);
      return section;
    });
    this.list.replaceChildren(...sections, ...(note ? [el("p", { class: "muted" }, note)] : []));
    this.#open(Boolean(sections.length || note) && this.form.contains(document.activeElement));
  }

  /** @param {Hit} hit */
  #hit(hit) {
    const [number, text] = [el("span", { class: "number" }, hit.line), el("code", {}, hit.text.trim().slice(0, 200))];
    const link = el("a", { href: `?pass=${hit.address}&view=text#L${hit.line}` }, number, text);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.#open(false);
      this.page.onHit(hit);
    });
    return link;
  }

  /** @param {boolean} open */
  #open(open) {
    this.list.hidden = !open;
    this.field.setAttribute("aria-expanded", String(open));
  }
}

/** @param {string} source */
function isPattern(source) {
  try {
    return Boolean(new RegExp(source));
  } catch {
    return false;
  }
}
