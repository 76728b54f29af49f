// Reads the kernels of the source as it is typed, and keeps the chooser and the arguments in step with it.
import { api, ApiError } from "../lib/api.js";
import { debounce, el } from "../lib/dom.js";
import { plural } from "../lib/format.js";

/** @typedef {import("./state.js").Discovery} Discovery */
/** @typedef {import("./state.js").Kernel} Kernel */
/** @typedef {import("./signature.js").Signature} Signature */
/** @typedef {import("./faults.js").Faults} Faults */

/** @typedef {"launch" | "guessed" | "given"} Origin */

const HINTS = {
  launch: "The source launches its kernels: types, constexprs and grids are taken from there.",
  declared: "The kernels' own decorators, TorchInductor's, carry the signatures: types, sizes and options are taken from there.",
  guessed: "Guessed from how the kernel uses its arguments; the launch code does not run. Change what is wrong.",
  none: "The source does not launch this kernel: its arguments are guessed from their use. Change what is wrong.",
  partly: "What you changed is given, the rest is guessed; the launch code does not run.",
  given: "The kernel is compiled as written here; the source's launch code does not run.",
};

export class Kernels {
  /**
   * @param {{select: HTMLSelectElement, facts: HTMLElement, origin: HTMLElement, hint: HTMLElement, table: HTMLDetailsElement}} parts
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
    /** What the user asked for, where the source allows it. @type {Origin} */
    this.origin = "launch";
    /** Whether the arguments were unfolded by this page. @type {boolean | null} */
    this.unfolded = null;
    /** @type {AbortController | null} */
    this.request = null;
    this.later = debounce(250, (/** @type {import("./state.js").Sources} */ sources) => void this.discover(sources));
    parts.select.addEventListener("change", () => this.show());
    parts.origin.addEventListener("click", (event) => {
      const button = event.target instanceof Element ? event.target.closest("button") : null;
      if (button) this.choose(/** @type {Origin} */ (button.dataset.value));
    });
    signature.onEdit = (argument) => {
      // A launch's constexprs can be given other values; another type is another signature.
      if (!argument.constexpr && this.origin === "launch") this.origin = "given";
      this.show();
    };
  }

  /** @param {Origin} origin */
  choose(origin) {
    this.origin = origin;
    if (origin === "given") this.signature.confirm();
    else this.signature.fill({});
    this.showChoices(this.parts.select.value);
    this.show();
  }

  /** Whether the source launches what is chosen. */
  get launched() {
    return this.kernel ? this.kernel.launched : this.found.launches;
  }

  /** Whether its decorator says the arguments, and no launch does. */
  get declared() {
    return this.kernel ? this.kernel.declared : this.found.kernels.some((kernel) => kernel.declared);
  }

  /** Whether the arguments come from this page's fields. */
  get given() {
    return this.origin !== "launch" || !this.launched;
  }

  /** What the page says of the arguments as they are. @returns {Origin} */
  get shown() {
    if (!this.given) return "launch";
    return this.signature.given || (this.origin === "given" && this.signature.complete) ? "given" : "guessed";
  }

  /** The hint for it. @returns {string} */
  get hint() {
    if (this.shown === "guessed") return this.launched ? HINTS.guessed : HINTS.none;
    if (this.shown === "given") return this.signature.complete ? HINTS.given : HINTS.partly;
    if (this.declared) return HINTS.declared;
    return HINTS.launch + (this.kernel?.autotuned ? " Each autotune config becomes a trace of one group." : "");
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
    if (this.origin === "launch" && this.found.launches && kernels.length > 1) choices.unshift(el("option", { value: "" }, this.found.kernels.some((kernel) => kernel.declared) ? "all that the source declares" : "all that the source launches"));
    if (!kernels.length) choices.push(el("option", { value: "" }, "no kernel yet: define one with @triton.jit"));
    this.parts.select.replaceChildren(...choices);
    this.parts.select.disabled = choices.length < 2;
    if (kernels.some((kernel) => kernel.name === wanted)) this.parts.select.value = wanted;
  }

  show() {
    const { origin, hint, table, facts } = this.parts;
    this.signature.show(this.kernel, this.given ? "guess" : this.declared ? "declared" : "launch");
    for (const button of origin.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.value === this.shown));
      button.disabled = button.dataset.value === "launch" ? !this.launched : !this.kernel;
      if (button.dataset.value === "launch") button.textContent = this.declared ? "from the source's decorators" : "from the launch code";
    }
    hint.textContent = this.hint;
    facts.textContent = this.kernel ? factsOf(this.kernel).join(" · ") : elsewhere(this.found);
    table.hidden = !this.kernel;
    // What the launch code says is folded away; what this page says is in view.
    if (table.open !== this.given && this.unfolded !== this.given) table.open = this.given;
    this.unfolded = this.given;
    this.onChange();
  }

  /** @param {number} targets @returns {string} what a click on the button will make */
  describe(targets) {
    if (!this.choices.length) return "";
    const what = this.kernel ? this.kernel.name : plural(this.choices.length, "kernel");
    return targets > 1 ? `${what} for ${plural(targets, "target")}, one group` : what;
  }
}

/** @param {Kernel} kernel @returns {string[]} what is found of it, in a few words each */
function factsOf({ line, within, held, gluon, tuning, heuristics }) {
  const facts = [`line ${line}`];
  if (within) facts.push(`in ${within}`);
  if (held.length) facts.push(`held by ${held.join(", ")}`);
  if (gluon) facts.push("Gluon");
  if (tuning) facts.push(tuning.computed ? "autotuned, configs computed" : `${plural(tuning.configs.length, "autotune config")}${tuning.key.length ? ` by ${tuning.key.join(", ")}` : ""}`);
  if (heuristics.length) facts.push(`heuristics fill ${heuristics.join(", ")}`);
  return facts;
}

/** @param {Discovery} found @returns {string} which launched kernels other files define */
function elsewhere({ imported = [] }) {
  return imported.length ? `launched here, defined elsewhere: ${imported.map(({ name, module }) => `${name} in ${module}`).join(", ")}` : "";
}
