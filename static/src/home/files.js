// The files of the source: tabs above the editor, which file is run first, and the installed module that a file may be.
import { el } from "../lib/dom.js";
import { tabKeys } from "./tabkeys.js";

/**
 * @typedef {object} Package
 * @property {Record<string, string>} files text by path, in the order of the tabs
 * @property {string} entry the file that is run first
 * @property {string | null} module the installed module that the only file is
 */

/** @typedef {import("./editor.js").SourceEditor} SourceEditor */

export const FIRST = "kernel.py";

/** As pipelines/kernels/package.py has it, which has the last word. */
const path = /^(?:\w[\w-]{0,99}\/){0,8}\w[\w.-]{0,99}\.py$/;

/** @param {string} source @returns {Package} */
export function single(source) {
  return { files: { [FIRST]: source }, entry: FIRST, module: null };
}

export class Files {
  /** @type {Package} */
  package = single("");
  /** The file in the editor. */
  active = FIRST;
  /** @type {Map<string, HTMLButtonElement>} */
  #buttons = new Map();
  /** @type {string | null} the file whose name is being written */
  #naming = null;

  /**
   * @param {HTMLElement} host
   * @param {SourceEditor} editor
   * @param {{onEdit: () => void, onShow: () => void, say: (message: string) => void}} page `onEdit` after each change
   */
  constructor(host, editor, page) {
    this.host = host;
    this.editor = editor;
    this.page = page;
    this.tabs = el("div", { class: "filetabs", role: "tablist", "aria-label": "Files" });
    this.add = el("button", { type: "button", class: "quiet", title: "new file", "aria-label": "New file", onclick: () => this.#create() }, "+");
    this.start = el("button", { type: "button", class: "quiet", title: "run this file first", onclick: () => this.#startHere() }, "Start here");
    this.remove = el("button", { type: "button", class: "quiet", onclick: () => this.#close(this.active) }, "Close");
    host.prepend(this.tabs, this.add, this.start, this.remove);
    tabKeys(this.tabs, { select: (name) => this.select(name, true), close: (name) => this.#close(name), rename: (name) => this.#rename(name) });
  }

  /** @returns {string[]} */
  get names() {
    return Object.keys(this.package.files);
  }

  /** What the API is sent. @returns {{source: string, file?: string} | {files: Record<string, string>, file: string} | {source: string, module: string}} */
  get body() {
    const { files, entry, module } = this.package;
    if (module !== null) return { source: files[entry], module };
    if (this.names.length > 1) return { files, file: entry };
    return entry === FIRST ? { source: files[entry] } : { source: files[entry], file: entry };
  }

  /** What kernels are looked for in. */
  get discovered() {
    const { files, entry } = this.package;
    return this.names.length > 1 ? { files, file: entry } : { source: files[entry] };
  }

  /** Takes other files in the place of all that are there. @param {Package} next */
  open(next) {
    this.editor.forget();
    this.package = { ...next, files: { ...next.files } };
    this.#naming = null;
    this.select(next.entry, false);
  }

  /** Adds files to those that are there. @param {Record<string, string>} files @param {string} entry */
  extend(files, entry) {
    this.editor.forget(Object.keys(files));
    this.package = { files: { ...this.package.files, ...files }, entry, module: null };
    this.select(entry, false);
    this.page.onEdit();
  }

  /** Takes what was typed. @param {string} text */
  edit(text) {
    this.package.files[this.active] = text;
  }

  /** @param {string} name @param {boolean} focus whether its tab gets the focus */
  select(name, focus) {
    if (!(name in this.package.files)) return;
    this.active = name;
    this.editor.open(name, this.package.files[name]);
    this.#draw();
    this.page.onShow();
    if (focus) this.#tab(name)?.focus();
  }

  #startHere() {
    this.package.entry = this.active;
    this.#draw();
    this.page.onEdit();
  }

  #create() {
    let name = "util.py";
    for (let number = 2; name in this.package.files; number++) name = `util${number}.py`;
    const folder = this.package.entry.slice(0, this.package.entry.lastIndexOf("/") + 1);
    this.package.files[folder + name] = "";
    this.package.module = null;
    this.#naming = folder + name;
    this.select(folder + name, false);
    this.page.onEdit();
  }

  /** @param {string} name */
  #close(name) {
    if (this.names.length < 2) return;
    const at = this.names.indexOf(name);
    delete this.package.files[name];
    this.editor.forget([name]);
    const near = this.names[Math.min(at, this.names.length - 1)];
    if (this.package.entry === name) this.package.entry = near;
    this.select(this.active === name ? near : this.active, true);
    this.page.onEdit();
  }

  /** @param {string} name */
  #rename(name) {
    this.#naming = name;
    this.#draw();
  }

  /** @param {string} name @param {string} written */
  #renamed(name, written) {
    if (this.#naming !== name) return;
    this.#naming = null;
    const wanted = written.trim().replace(/^\.?\//, "");
    const next = wanted.endsWith(".py") ? wanted : `${wanted}.py`;
    const taken = next !== name && next in this.package.files;
    if (!wanted || next === name || taken || !path.test(next)) {
      if (taken) this.page.say(`There is a file ${next} already.`);
      else if (wanted && next !== name) this.page.say(`${next} is no path of a Python file, such as pkg/util.py.`);
      return this.#draw();
    }
    const { files, entry } = this.package;
    const renamed = Object.entries(files).map(([key, text]) => [key === name ? next : key, text]);
    this.package = { files: Object.fromEntries(renamed), entry: entry === name ? next : entry, module: null };
    this.editor.rename(name, next);
    if (this.active === name) this.active = next;
    this.#draw();
    this.#tab(next)?.focus();
    this.page.onEdit();
  }

  #draw() {
    const { entry, module } = this.package;
    const several = this.names.length > 1;
    const shown = this.names.map((name) => (name === this.#naming ? this.#field(name) : this.#button(name, several && name === entry)));
    if (shown.length !== this.tabs.children.length || shown.some((tab, at) => tab !== this.tabs.children[at])) this.tabs.replaceChildren(...shown);
    for (const name of this.#buttons.keys()) if (!(name in this.package.files)) this.#buttons.delete(name);
    this.start.disabled = this.active === entry;
    this.start.hidden = this.remove.hidden = !several;
    this.host.dataset.module = module ?? "";
    const field = this.tabs.querySelector("input");
    if (field) {
      field.focus();
      field.setSelectionRange(field.value.lastIndexOf("/") + 1, field.value.length - ".py".length);
    }
    this.#tab(this.active)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** @param {string} name @param {boolean} first */
  #button(name, first) {
    // The same element stays, so that a double click is one.
    const tab = this.#buttons.get(name) ?? newTab(name);
    this.#buttons.set(name, tab);
    tab.setAttribute("aria-selected", String(name === this.active));
    tab.tabIndex = name === this.active ? 0 : -1;
    const mark = tab.querySelector(".start");
    if (mark instanceof HTMLElement) mark.hidden = !first;
    return tab;
  }

  /** @param {string} name */
  #field(name) {
    const field = el("input", { class: "mono", value: name, "aria-label": `New name of ${name}`, autocomplete: "off", spellcheck: "false", size: Math.max(12, name.length + 2) });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.#renamed(name, event.key === "Enter" ? field.value : name);
      this.#tab(this.active)?.focus();
    });
    field.addEventListener("blur", () => this.#renamed(name, field.value));
    return field;
  }

  /** @param {string} name @returns {HTMLElement | null} */
  #tab(name) {
    return this.tabs.querySelector(`[data-file="${CSS.escape(name)}"]`);
  }
}

/** @param {string} name */
function newTab(name) {
  const at = name.lastIndexOf("/") + 1;
  const title = "double click or F2 renames, Delete closes";
  return el(
    "button",
    { type: "button", role: "tab", class: "filetab", "data-file": name, title, "aria-keyshortcuts": "F2 Delete" },
    el("span", { class: "start", title: "run first", hidden: true }, el("span", { class: "sr" }, "run first")),
    el("span", {}, el("span", { class: "muted" }, name.slice(0, at)), name.slice(at)),
  );
}
