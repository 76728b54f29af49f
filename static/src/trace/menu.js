// The export menu: a disclosure whose entries are links and buttons, so it opens without this too.
import { notice } from "../lib/notice.js";

export class Menu {
  /**
   * @param {Record<string, () => void>} actions what the buttons do, by their data-do
   * @param {() => void} [onOpen]
   */
  constructor(actions, onOpen = () => {}) {
    document.addEventListener("click", (event) => {
      const action = event.target instanceof Element ? event.target.closest("[data-do]") : null;
      if (action instanceof HTMLElement) actions[action.dataset.do ?? ""]?.();
      if (event.target instanceof Element && event.target.closest("#export li")) this.close();
    });
    document.addEventListener("pointerdown", ({ target }) => {
      if (this.open && target instanceof Node && !this.#root?.contains(target)) this.close();
    });
    document.addEventListener("toggle", ({ target }) => target === this.#root && this.open && onOpen(), true);
    document.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** The menu comes with the end of a compilation, so it is looked up each time. */
  get #root() {
    const found = document.getElementById("export");
    return found instanceof HTMLDetailsElement ? found : null;
  }

  get open() {
    return this.#root?.open ?? false;
  }

  toggle() {
    const root = this.#root;
    if (!root) return;
    root.open = !root.open;
    if (root.open) this.#entries()[0]?.focus();
    else root.querySelector("summary")?.focus();
  }

  /** Closes; what was in it and had the focus gives it to the button. */
  close() {
    const root = this.#root;
    if (!root) return;
    root.open = false;
    if (root.contains(document.activeElement)) root.querySelector("summary")?.focus();
  }

  /** @returns {HTMLElement[]} */
  #entries() {
    return Array.from(this.#root?.querySelectorAll("li a, li button") ?? []);
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (!this.open || !(event.target instanceof Node) || !this.#root?.contains(event.target)) return;
    const entries = this.#entries();
    const at = entries.findIndex((entry) => entry === document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    entries.at(next % entries.length)?.focus();
  }
}

/** Copies the address of the view. */
export async function share() {
  if (await copy(location.href)) notice("The link to this view is copied.");
  else notice("The browser does not let pages copy here; the address bar holds the link.", "error");
}

/** @param {string} text @returns {Promise<boolean>} whether the browser let it */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
