// The page's whole state, as it stands in the URL.

/** @typedef {"diff" | "unified" | "before" | "text"} View */
/** @typedef {"passes" | "source" | "diagnostics" | "resources" | "about" | "details"} Tab */

/**
 * @typedef {object} State
 * @property {string | null} pass
 * @property {View} view
 * @property {string | null} against null is the snapshot that the pass received
 * @property {Tab} tab
 * @property {boolean} locations
 * @property {boolean} raw SASS with its encodings
 * @property {string | null} file of the package, on the source tab; null is the file that was run
 * @property {[number, number] | null} lines marked, from 1, both included
 */

/** @type {View[]} */
const views = ["diff", "unified", "before", "text"];
/** @type {Tab[]} */
const tabs = ["passes", "source", "diagnostics", "resources", "about", "details"];

/**
 * How the state stands in the URL.
 * @typedef {object} Place
 * @property {(fallback: string | null) => State} read `fallback` is the pass shown where the URL names none
 * @property {(state: State) => string} write the new URL, relative
 */

/** @type {Place} */
export const queryPlace = {
  read: (fallback) => readState(new URLSearchParams(location.search), readLines(location.hash), fallback),
  write: (state) => {
    const text = writeQuery(state);
    return (text ? `?${text}` : location.pathname) + (state.lines ? `#${writeLines(state.lines)}` : "");
  },
};

/** @param {URLSearchParams} query @param {[number, number] | null} lines @param {string | null} fallback @returns {State} */
export function readState(query, lines, fallback) {
  const view = query.get("view") === "after" ? "text" : query.get("view");
  const pass = query.get("pass") ?? fallback;
  const source = pass === "source" || pass?.startsWith("source:");
  const tab = source && (query.has("pass") || !query.has("tab")) ? "source" : query.get("tab");
  return {
    pass: source ? (fallback?.startsWith("source") ? null : fallback) : pass,
    view: views.find((name) => name === view) ?? "diff",
    against: query.get("against"),
    tab: tabs.find((name) => name === tab) ?? "passes",
    locations: query.get("locations") === "1",
    raw: query.get("raw") === "1",
    file: source ? pass?.slice("source:".length) || null : null,
    lines,
  };
}

/** @param {State} state @returns {string} all but the marked lines */
export function writeQuery(state) {
  const query = new URLSearchParams();
  if (state.tab === "source") query.set("pass", state.file ? `source:${state.file}` : "source");
  else if (state.pass) query.set("pass", state.pass);
  if (state.tab !== "passes" && state.tab !== "source") query.set("tab", state.tab);
  if (state.view !== "diff") query.set("view", state.view);
  if (state.against) query.set("against", state.against);
  if (state.locations) query.set("locations", "1");
  if (state.raw) query.set("raw", "1");
  return query.toString().replaceAll("%3A", ":");
}

/** @param {string} hash @returns {[number, number] | null} */
export function readLines(hash) {
  const match = /^#L(\d{1,9})(?:-L?(\d{1,9}))?$/.exec(hash);
  if (!match) return null;
  const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])];
  return first < 1 || last < 1 ? null : [Math.min(first, last), Math.max(first, last)];
}

/** @param {[number, number]} lines @returns {string} `L3` or `L3-L7` */
export function writeLines(lines) {
  return lines[0] === lines[1] ? `L${lines[0]}` : `L${lines[0]}-L${lines[1]}`;
}

// Browsers refuse scripts that replace the address too often, as a held key would.
const writeDelay = 80;

/** Holds the state, keeps the URL in step with it, and tells listeners. */
export class Router {
  /** @type {((state: State, before: State) => void)[]} */
  #listeners = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pending;
  #written = -writeDelay;

  /** @param {string | null} fallback @param {Place} place */
  constructor(fallback, place) {
    this.fallback = fallback;
    this.place = place;
    this.state = place.read(fallback);
    addEventListener("popstate", () => {
      clearTimeout(this.#pending);
      this.#pending = undefined;
      this.#set(place.read(this.fallback));
    });
    addEventListener("pagehide", () => this.flush());
  }

  /** @param {(state: State, before: State) => void} listener */
  listen(listener) {
    this.#listeners.push(listener);
  }

  /**
   * Moves to a changed state. Stepping replaces the history's entry, a deliberate jump adds one.
   * @param {Partial<State>} patch
   * @param {"push" | "replace"} [how]
   */
  go(patch, how = "push") {
    const state = { ...this.state, ...patch };
    if (how === "push") this.flush();
    const url = this.place.write(state);
    const pushed = how === "push" && new URL(url, location.href).href !== location.href;
    if (pushed) history.pushState(null, "", url);
    this.#set(state);
    if (pushed) return;
    // A single step is written at once, so that a reload right after it shows the same.
    if (performance.now() - this.#written >= writeDelay) this.#write();
    else this.#pending ??= setTimeout(() => this.flush(), writeDelay);
  }

  /** Writes the address now, if it is behind. */
  flush() {
    if (this.#pending !== undefined) this.#write();
  }

  #write() {
    clearTimeout(this.#pending);
    this.#pending = undefined;
    history.replaceState(null, "", this.place.write(this.state));
    this.#written = performance.now();
  }

  /** @param {State} state */
  #set(state) {
    const before = this.state;
    this.state = state;
    for (const listener of this.#listeners) listener(state, before);
  }
}
