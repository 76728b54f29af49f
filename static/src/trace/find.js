// Search: marks and walks the matches in the text in view, and lists those of all passes.
import { RegExpCursor } from "@codemirror/search";
import { ApiError } from "../lib/api.js";
import { debounce, el, need } from "../lib/dom.js";
import { count, plural } from "../lib/format.js";

/** @typedef {import("./types.js").Hit} Hit */

/**
 * What is searched, and what to do with what is found.
 * @typedef {object} Searched
 * @property {() => import("@codemirror/state").Text} text the text in view
 * @property {() => number} line the line one stands on, from 1
 * @property {(query: RegExp | null) => void} onQuery
 * @property {(line: number) => void} onLine a line of the text in view
 * @property {(hit: Hit) => void} onHit a line of any pass
 * @property {(address: string) => string} name what a pass is called
 */

const mostCounted = 100_000;
const shownHits = 8;

export class Find {
  /** @type {RegExp | null} */
  query = null;
  #turn = 0;

  /** @param {import("./types.js").Backend} backend @param {Searched} page */
  constructor(backend, page) {
    this.backend = backend;
    this.page = page;
    this.form = need("[data-find]", HTMLFormElement);
    this.field = need("input", HTMLInputElement, this.form);
    this.counted = need("[data-matches]", HTMLElement, this.form);
    this.regex = need("[data-regex]", HTMLButtonElement, this.form);
    this.list = need("#hits", HTMLElement);
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
      this.step(event.shiftKey ? -1 : 1);
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
    this.query = null;
    this.field.removeAttribute("aria-invalid");
    if (text) {
      try {
        this.query = new RegExp(regex ? text : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
      } catch {
        this.field.setAttribute("aria-invalid", "true");
      }
    }
    this.page.onQuery(this.query);
    this.recount();
  }

  /** Counts the matches in the text in view. */
  recount() {
    if (!this.query) {
      this.counted.textContent = "";
      return;
    }
    let found = 0;
    for (const cursor = this.#cursor(0); found < mostCounted && !cursor.next().done; ) found++;
    this.counted.textContent = count(found);
    this.counted.title = `${plural(found, "match", "matches")} in this text`;
  }

  /** @param {number} from @param {number} [to] */
  #cursor(from, to) {
    return new RegExpCursor(this.page.text(), this.query?.source ?? "", { ignoreCase: true }, from, to);
  }

  /** Goes to the next or previous line that matches. @param {1 | -1} direction */
  step(direction) {
    if (!this.query) return;
    const text = this.page.text();
    const here = text.line(Math.min(this.page.line(), text.lines));
    const [from, to] = direction > 0 ? [Math.min(here.to + 1, text.length), text.length] : [0, here.from];
    const found = this.#edge(from, to, direction) ?? this.#edge(0, text.length, direction);
    if (found !== null) this.page.onLine(text.lineAt(found).number);
  }

  /** @param {number} from @param {number} to @param {1 | -1} direction @returns {number | null} the first or last match */
  #edge(from, to, direction) {
    let last = null;
    for (const cursor = this.#cursor(from, to); !cursor.next().done; ) {
      last = cursor.value.from;
      if (direction > 0) break;
    }
    return last;
  }

  async #everywhere() {
    const turn = ++this.#turn;
    const q = this.field.value;
    if (!this.query || q.length < 2) return this.#fill([], "");
    const regex = this.regex.getAttribute("aria-pressed") === "true";
    try {
      const { hits, truncated } = await this.backend.search(q, regex);
      if (turn !== this.#turn) return;
      const note = truncated ? `the first ${plural(hits.length, "line")}; narrow the search to see others` : "";
      this.#fill(hits, hits.length ? note : "no line of any pass matches");
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
