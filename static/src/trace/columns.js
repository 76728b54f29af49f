// The side columns: collapsed by choice, a tab or a drawer where the window is narrow.
import { need } from "../lib/dom.js";

/** @param {string} side */
function kept(side) {
  try {
    return localStorage.getItem(`column-${side}`) !== "closed";
  } catch {
    return true;
  }
}

/** @param {string} side @param {boolean} open */
function keep(side, open) {
  try {
    localStorage.setItem(`column-${side}`, open ? "open" : "closed");
  } catch {
    // Storage may be off; the choice then lasts for this page.
  }
}

/** @param {HTMLElement} main */
export function wireColumns(main) {
  for (const button of document.querySelectorAll("[data-side]")) {
    if (!(button instanceof HTMLButtonElement)) continue;
    const side = button.dataset.side ?? "";
    const set = /** @param {boolean} open */ (open) => {
      button.setAttribute("aria-pressed", String(open));
      main.classList.toggle(`no-${side}`, !open);
    };
    set(kept(side));
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      set(open);
      keep(side, open);
    });
  }
}

export class Drawer {
  /** @param {HTMLElement} main */
  constructor(main) {
    this.main = main;
    this.button = need("[data-drawer]", HTMLButtonElement);
    this.button.addEventListener("click", () => this.set(!this.open));
    need("#work", HTMLElement).addEventListener("pointerdown", () => this.set(false));
  }

  get open() {
    return this.main.classList.contains("drawer-open");
  }

  /** @param {boolean} open */
  set(open) {
    this.main.classList.toggle("drawer-open", open);
    this.button.setAttribute("aria-expanded", String(open));
  }
}

/**
 * The row of tabs: arrow keys move along it, as in any tab list.
 * @param {(tab: string) => void} onTab
 */
export function wireTabs(onTab) {
  const bar = need(".tablist", HTMLElement);
  const tabs = /** @type {HTMLElement[]} */ (Array.from(bar.querySelectorAll("[data-tab]")));
  bar.setAttribute("role", "tablist");
  for (const tab of tabs) {
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panelOf(tab.dataset.tab ?? ""));
  }
  bar.addEventListener("click", (event) => {
    const tab = event.target instanceof Element ? event.target.closest("[data-tab]") : null;
    if (!(tab instanceof HTMLElement) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    onTab(tab.dataset.tab ?? "passes");
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const shown = tabs.filter((tab) => tab.offsetParent);
    const at = shown.findIndex((tab) => tab === document.activeElement);
    const next = step && at >= 0 && shown[(at + step + shown.length) % shown.length];
    if (!next) return;
    event.preventDefault();
    next.focus();
    onTab(next.dataset.tab ?? "passes");
  });
}

/** @param {string} tab */
function panelOf(tab) {
  return { passes: "work", details: "card" }[tab] ?? `sheet-${tab}`;
}

/** @param {string} tab */
export function selectTab(tab) {
  for (const each of document.querySelectorAll("[data-tab][role=tab]")) {
    if (!(each instanceof HTMLElement)) continue;
    const on = each.dataset.tab === tab;
    each.setAttribute("aria-selected", String(on));
    each.tabIndex = on ? 0 : -1;
    each.removeAttribute("aria-current");
    const panel = document.getElementById(panelOf(each.dataset.tab ?? ""));
    if (panel && each.dataset.tab !== "details") panel.setAttribute("role", "tabpanel");
  }
}
