// A trace that is still being compiled: stages and passes tick in until the page can show it.
import { el, need } from "../lib/dom.js";
import { plural, seconds } from "../lib/format.js";

/** @typedef {{onReady: () => void, onDone: () => void, onGroup: () => void, onLost: () => void}} Listener */

export class Progress {
  /** @type {HTMLElement | null} */
  #row = null;
  /** @type {HTMLElement | null} */
  #rows = null;
  #passes = 0;
  #started = performance.now();
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #clock;

  /**
   * @param {string} base the trace's API
   * @param {() => boolean} ticking whether passes are still to be listed: the stream begins with what has long happened
   * @param {Listener} listener
   */
  constructor(base, ticking, listener) {
    this.ticking = ticking;
    this.state = document.querySelector("[data-progress-state]");
    this.stages = document.querySelector("[data-stages]");
    this.list = need("#list", HTMLElement);
    this.listener = listener;
    this.source = new EventSource(`${base}/events`);
    this.#listen("state", ({ status }) => this.#say(status));
    this.#listen("stage", ({ stage }) => this.#stage(stage));
    this.#listen("pass", (pass) => this.#pass(pass));
    this.#listen("artifact", ({ name }) => this.#artifact(name));
    this.#listen("passes-ready", () => listener.onReady());
    this.#listen("group", () => listener.onGroup());
    this.#listen("done", () => {
      this.close();
      listener.onDone();
    });
    this.source.addEventListener("error", () => {
      if (this.source.readyState === EventSource.CLOSED) listener.onLost();
    });
    this.#clock = setInterval(() => this.#tick(), 100);
  }

  /** @param {string} name @param {(data: any) => void} handle */
  #listen(name, handle) {
    this.source.addEventListener(name, (event) => handle(JSON.parse(event.data || "{}")));
  }

  close() {
    this.source.close();
    clearInterval(this.#clock);
  }

  /** @param {string} status */
  #say(status) {
    if (!(this.state instanceof HTMLElement)) return;
    this.state.dataset.state = status;
    this.state.textContent = status === "queued" ? "waiting for a worker" : "compiling";
    if (status === "running") this.#started = performance.now();
  }

  #tick() {
    const clock = this.#row?.querySelector("[data-clock]");
    if (clock) clock.textContent = seconds((performance.now() - this.#started) / 1000);
  }

  /** @param {string} stage */
  #stage(stage) {
    if (!this.ticking()) return;
    this.#begin(stage);
    this.#rows = el("ol");
    const heading = el("h2", { class: "stage" }, el("span", {}, stage), el("small"));
    this.list.append(el("section", { "data-stage": stage }, heading, this.#rows));
  }

  /** @param {string} name */
  #begin(name) {
    if (this.#row) this.#row.dataset.done = "";
    this.#passes = 0;
    this.#started = performance.now();
    const passes = el("span", { class: "muted", "data-passes": "" });
    const clock = el("span", { class: "muted num", "data-clock": "" });
    this.#row = el("li", {}, el("span", { class: "name" }, name), passes, clock);
    this.stages?.append(this.#row);
  }

  /** @param {{stage: string, ordinal: number, name: string, parent: number | null}} pass */
  #pass({ ordinal, name, parent }) {
    if (!this.ticking()) return;
    this.#passes += 1;
    const words = this.#row?.querySelector("[data-passes]");
    if (words) words.textContent = plural(this.#passes, "pass", "passes");
    const cells = [el("span", { class: "ordinal" }, ordinal), el("span", { class: "name" }, name)];
    const row = el("li", {}, el("span", { class: "pass quiet-pass" }, ...cells));
    if (parent) row.classList.add("child");
    this.#rows?.append(row);
    this.list.scrollTop = this.list.scrollHeight;
  }

  /** @param {string} name */
  #artifact(name) {
    this.#begin(name);
    if (this.#row) this.#row.dataset.done = "";
  }
}
