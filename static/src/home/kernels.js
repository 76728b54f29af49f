// Reads the kernels of the source as it is typed, and keeps the chooser and the arguments in step with it.
import { api, ApiError } from "../lib/api.js";
import { debounce, el } from "../lib/dom.js";
import { plural } from "../lib/format.js";

/** @typedef {import("./state.js").Discovery} Discovery */
/** @typedef {import("./state.js").Kernel} Kernel */
/** @typedef {import("./signature.js").Signature} Signature */
/** @typedef {import("./faults.js").Faults} Faults */

const HINTS = {
  launch: "The source launches its kernels: types, constexprs and grids are taken from there.",
  given: "The kernel is compiled as written here; the source's launch code does not run.",
  none: "The source does not launch this kernel, so the arguments come from here.",
};

export class Kernels {
  /**
   * @param {{select: HTMLSelectElement, origin: HTMLElement, hint: HTMLElement, table: HTMLElement}} parts
   * @param {Signature} signature
   * @param {Faults} faults
   * @param {() => void} onChange
   */
  constructor(parts, signature, faults, onChange) {
    this.parts = parts;
    this.signature = signature;
    this.faults = faults;
    this.onChange = onChange;
    /** @type {Discovery} */
    this.found = { kernels: [], launches: false, error: null };
    /** What the user asked for, where the source allows both. @type {"launch" | "given"} */
    this.origin = "launch";
    /** @type {AbortController | null} */
    this.request = null;
    this.later = debounce(250, (/** @type {import("./state.js").Sources} */ sources) => void this.discover(sources));
    parts.select.addEventListener("change", () => this.show());
    parts.origin.addEventListener("click", (event) => {
      const button = event.target instanceof Element ? event.target.closest("button") : null;
      if (button) this.choose(button.dataset.value === "given" ? "given" : "launch");
    });
  }

  /** @param {"launch" | "given"} origin */
  choose(origin) {
    this.origin = origin;
    this.showChoices(this.parts.select.value);
    this.show();
  }

  /** Whether the source launches what is chosen. */
  get launched() {
    return this.kernel ? this.kernel.launched : this.found.launches;
  }

  /** Whether the arguments come from this page's fields. */
  get given() {
    return this.origin === "given" || !this.launched;
  }

  /** The kernels to choose from: helpers that other kernels call only where there is nothing else. */
  get choices() {
    const whole = this.found.kernels.filter((kernel) => !kernel.helper);
    return whole.length ? whole : this.found.kernels;
  }

  /** The kernel chosen; null means all that the source launches. @returns {Kernel | null} */
  get kernel() {
    return this.found.kernels.find((kernel) => kernel.name === this.parts.select.value) ?? null;
  }

  /**
   * Asks the server for the kernels of a source; an answer that comes too late is dropped.
   * @param {import("./state.js").Sources} sources
   * @param {string | null} [wanted] the kernel to choose
   */
  async discover(sources, wanted = null) {
    this.request?.abort();
    const request = (this.request = new AbortController());
    try {
      const found = await api("/kernels", { body: sources, signal: request.signal });
      if (request.signal.aborted) return;
      this.found = found;
    } catch (error) {
      if (request.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      this.found = { kernels: [], launches: false, error: { message: error.message, line: null, column: null } };
    }
    this.faults.source(this.found.error);
    // While a line is half typed the last good kernels stay on show.
    if (this.found.error && this.parts.select.options.length > 0 && this.parts.select.value) return;
    this.showChoices(wanted ?? this.parts.select.value);
    this.show();
  }

  /** @param {string} wanted */
  showChoices(wanted) {
    const kernels = this.choices;
    const choices = kernels.map((kernel) => el("option", { value: kernel.name }, kernel.autotuned ? `${kernel.name}, autotuned` : kernel.name));
    if (this.origin === "launch" && this.found.launches && kernels.length > 1) choices.unshift(el("option", { value: "" }, "all that the source launches"));
    if (!kernels.length) choices.push(el("option", { value: "" }, "no kernel yet: define one with @triton.jit"));
    this.parts.select.replaceChildren(...choices);
    this.parts.select.disabled = choices.length < 2;
    if (kernels.some((kernel) => kernel.name === wanted)) this.parts.select.value = wanted;
  }

  show() {
    const { origin, hint, table } = this.parts;
    for (const button of origin.querySelectorAll("button")) {
      const value = button.dataset.value === "given";
      button.setAttribute("aria-pressed", String(value === this.given));
      button.disabled = !value && !this.launched;
    }
    hint.textContent = this.given ? (this.launched ? HINTS.given : HINTS.none) : HINTS.launch;
    if (this.kernel?.autotuned && !this.given) hint.textContent += " Each autotune config becomes a trace of one group.";
    table.hidden = !this.given;
    this.signature.show(this.kernel);
    this.onChange();
  }

  /** @param {number} targets @returns {string} what a click on the button will make */
  describe(targets) {
    if (!this.choices.length) return "";
    const what = this.kernel ? this.kernel.name : plural(this.choices.length, "kernel");
    return targets > 1 ? `${what} for ${plural(targets, "target")}, one group` : what;
  }
}
