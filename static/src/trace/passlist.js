// The pass list, rendered by the server: selection, filter, and folds that open for the pass one stands on.
import { need } from "../lib/dom.js";
import { plural } from "../lib/format.js";

export class PassList {
  /** @type {HTMLDetailsElement[]} folds that opened only to show the selected pass */
  #borrowed = [];
  /** @type {Set<HTMLDetailsElement>} folds that opened only for the filter */
  #opened = new Set();
  #filter = "";
  /** @type {HTMLElement | undefined} */
  #selected;

  /**
   * @param {HTMLElement} root the whole column
   * @param {(address: string) => void} onPick
   */
  constructor(root, onPick) {
    this.list = need("#list", HTMLElement, root);
    this.field = need("[data-filter]", HTMLInputElement, root);
    this.total = need("[data-filter-count]", HTMLElement, root);
    this.list.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[data-address]") : null;
      if (!(link instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      onPick(link.dataset.address ?? "");
    });
    this.list.addEventListener("toggle", (event) => this.#keep(event.target), true);
    this.field.addEventListener("input", () => this.filter(this.field.value));
    this.field.addEventListener("keydown", (event) => {
      const first = this.#links().find((link) => link.offsetParent);
      if (event.key === "Enter" && first) onPick(first.dataset.address ?? "");
      if (event.key === "Escape") this.clear();
      if (event.key === "ArrowDown") first?.focus();
    });
    this.count();
  }

  /** A fold that a person closes or opens is theirs. @param {EventTarget | null} target */
  #keep(target) {
    if (target instanceof HTMLDetailsElement && !target.open) this.#borrowed = this.#borrowed.filter((fold) => fold !== target);
  }

  #links() {
    return /** @type {HTMLElement[]} */ (Array.from(this.list.querySelectorAll("a[data-address]")));
  }

  /** @param {string | null} address */
  select(address) {
    const link = this.#links().find((each) => each.dataset.address === address);
    if (link === this.#selected && link) return;
    this.list.querySelector('[aria-current="true"]')?.removeAttribute("aria-current");
    this.#selected = link;
    if (!link) return;
    link.setAttribute("aria-current", "true");
    this.#openAround(link);
    link.scrollIntoView({ block: "nearest" });
  }

  /** @param {HTMLElement} link */
  #openAround(link) {
    const around = /** @type {HTMLDetailsElement[]} */ ([]);
    for (let fold = link.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null) around.push(fold);
    for (const fold of this.#borrowed) if (!around.includes(fold)) fold.open = false;
    this.#borrowed = around.filter((fold) => this.#borrowed.includes(fold) || !fold.open);
    for (const fold of around) fold.open = true;
  }

  /** Shows the passes whose name or address holds every word. @param {string} text */
  filter(text) {
    this.#filter = text.trim().toLowerCase();
    const words = this.#filter.split(/\s+/).filter(Boolean);
    this.list.classList.toggle("filtering", words.length > 0);
    for (const link of this.#links()) {
      const name = `${link.dataset.address} ${link.textContent}`.toLowerCase();
      link.parentElement?.classList.toggle("found", words.every((word) => name.includes(word)));
    }
    for (const part of this.list.querySelectorAll("section, details")) {
      part.classList.toggle("found", Boolean(part.querySelector(".found > a")));
    }
    this.#openFound(words.length > 0);
    this.count();
  }

  /** Opens the folds that hold what was found, and closes them when the filter lets go of them. @param {boolean} filtering */
  #openFound(filtering) {
    for (const fold of this.list.querySelectorAll("details")) {
      const found = filtering && fold.classList.contains("found");
      if (found && !fold.open) {
        fold.open = true;
        this.#opened.add(fold);
      } else if (!found && this.#opened.delete(fold)) fold.open = fold.querySelector('[aria-current="true"]') !== null;
    }
  }

  clear() {
    this.field.value = "";
    this.filter("");
    this.field.blur();
    this.list.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
  }

  /** Takes the list as it now stands. @param {string | null} address the selected pass */
  renew(address) {
    this.#borrowed = [];
    this.#selected = undefined;
    this.list.scrollTop = 0;
    this.filter(this.field.value);
    this.select(address);
  }

  /** Says how many passes there are, or were found. */
  count() {
    const passes = this.#links().filter((link) => !/^[a-z-]+(:0)?$/.test(link.dataset.address ?? ""));
    const found = passes.filter((link) => link.parentElement?.classList.contains("found"));
    if (this.#filter) this.total.textContent = `${found.length} of ${passes.length}`;
    else this.total.textContent = passes.length ? plural(passes.length, "pass", "passes") : "";
  }
}
