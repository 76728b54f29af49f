// Operations by dialect over the pipeline, drawn as one area. Lowering multiplies them a hundredfold, so each stage has a
// scale of its own, and heights grow with the square root.
import { count, plural } from "../lib/format.js";
import { el } from "../lib/dom.js";

/** @typedef {import("./model.js").Entry} Entry */

const [width, height] = [1000, 46];
const top = 4;
const shades = 6;
const space = "http://www.w3.org/2000/svg";

/** @param {string} name @param {Record<string, string | number>} attributes @param {...Node} children */
function svg(name, attributes, ...children) {
  const element = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** @param {Entry} entry */
function operations(entry) {
  return Object.values(entry.facts?.dialects ?? {}).reduce((sum, value) => sum + value, 0);
}

/**
 * The dialects that matter most, by their largest share of any stage, so that small stages have a say.
 * @param {Entry[][]} stages
 */
function leading(stages) {
  /** @type {Map<string, number>} */
  const share = new Map();
  for (const stage of stages) {
    const peak = Math.max(1, ...stage.map(operations));
    for (const entry of stage) {
      for (const [name, value] of Object.entries(entry.facts?.dialects ?? {})) {
        share.set(name, Math.max(share.get(name) ?? 0, value / peak));
      }
    }
  }
  const names = Array.from(share).sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return names.slice(0, names.length > shades ? shades - 1 : shades);
}

export class Strip {
  /** @type {Entry[]} */
  #entries = [];
  /** @type {string[]} */
  #names = [];
  /** @type {Element | null} */
  #cursor = null;
  #at = -1;

  /**
   * @param {HTMLElement} host
   * @param {(address: string) => void} onPick
   */
  constructor(host, onPick) {
    this.host = host;
    this.onPick = onPick;
    this.words = el("span", { class: "strip-words" });
  }

  /** @param {import("./model.js").Model} model */
  draw(model) {
    const known = model.groups().filter(([name]) => name !== "artifacts");
    const stages = known.map(([, entries]) => entries.filter((entry) => entry.facts && entry.syntax === "mlir")).filter((stage) => stage.length);
    this.#entries = stages.flat();
    this.#names = leading(stages);
    if (!this.#entries.length) return this.host.replaceChildren();
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "strip-area" });
    let start = 0;
    for (const stage of stages) {
      picture.append(...this.#areas(stage, start));
      if (start) picture.append(svg("line", { class: "strip-stage", x1: this.#x(start), x2: this.#x(start), y1: 0, y2: height }));
      start += stage.length;
    }
    this.#cursor = svg("line", { class: "strip-cursor", y1: 0, y2: height });
    picture.append(this.#cursor);
    const range = { "aria-valuemin": 1, "aria-valuemax": this.#entries.length };
    const name = { role: "slider", tabindex: "0", "aria-label": "Place in the pipeline" };
    const slider = el("div", { class: "strip-slider", ...name, ...range });
    slider.append(picture, ...this.#labels(stages));
    this.#wire(slider);
    this.host.replaceChildren(slider, this.#legend());
    this.slider = slider;
    this.select(this.#entries[this.#at]?.address ?? null);
  }

  /** @param {number} at */
  #x(at) {
    return (at / this.#entries.length) * width;
  }

  /** @param {Entry[]} stage @param {number} start @returns {Element[]} */
  #areas(stage, start) {
    const peak = Math.max(1, ...stage.map(operations));
    const y = /** @param {number} value @param {number} at */ (value, at) => {
      const total = Math.max(1, operations(stage[at]));
      return (height - (value / total) * Math.sqrt(total / peak) * (height - top)).toFixed(1);
    };
    // Each pass is a plateau as wide as its slot: what stands under the cursor is what it left.
    const edge = /** @param {number[]} values */ (values) =>
      values.flatMap((value, at) => [0, 1].map((end) => `${this.#x(start + at + end)},${y(value, at)}`));
    let floor = stage.map(() => 0);
    return [...this.#names, null].map((name, shade) => {
      const own = /** @param {Entry} entry @param {number} at */ (entry, at) =>
        name === null ? operations(entry) : floor[at] + (entry.facts?.dialects[name] ?? 0);
      const ceiling = stage.map(own);
      const points = [...edge(ceiling), ...edge(floor).reverse()].join(" ");
      floor = ceiling;
      return svg("polygon", { class: `shade-${name === null ? "rest" : shade}`, points });
    });
  }

  /** @param {Entry[][]} stages */
  #labels(stages) {
    let start = 0;
    return stages.map((stage) => {
      const label = el("span", { class: "strip-label" }, stage[0].stage);
      label.style.left = `${(start / this.#entries.length) * 100}%`;
      label.style.width = `${(stage.length / this.#entries.length) * 100}%`;
      label.title = `${stage[0].stage}: at most ${plural(Math.max(...stage.map(operations)), "operation")}`;
      start += stage.length;
      return label;
    });
  }

  #legend() {
    const known = this.#names.map((name, shade) => el("span", {}, el("i", { class: `shade-${shade}` }), name));
    const every = this.#entries.flatMap((entry) => Object.keys(entry.facts?.dialects ?? {}));
    const rest = every.some((name) => !this.#names.includes(name));
    if (rest) known.push(el("span", {}, el("i", { class: "shade-rest" }), "others"));
    return el("div", { class: "strip-legend" }, ...known, this.words);
  }

  /** @param {HTMLElement} slider */
  #wire(slider) {
    const at = /** @param {MouseEvent} event */ (event) => {
      const box = slider.getBoundingClientRect();
      const place = Math.floor(((event.clientX - box.left) / box.width) * this.#entries.length);
      return Math.max(0, Math.min(this.#entries.length - 1, place));
    };
    slider.addEventListener("mousemove", (event) => this.#say(at(event)));
    slider.addEventListener("mouseleave", () => this.#say(this.#at));
    slider.addEventListener("click", (event) => this.onPick(this.#entries[at(event)].address));
    slider.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      const next = step && this.#entries[this.#at + step];
      if (!next) return;
      event.preventDefault();
      this.onPick(next.address);
    });
  }

  /** @param {number} at */
  #say(at) {
    const entry = this.#entries[at];
    const words = entry && `${entry.address} ${entry.name}: ${plural(operations(entry), "operation")}`;
    this.words.textContent = words ?? "operations by dialect over passes";
    const most = Object.entries(entry?.facts?.dialects ?? {}).sort((a, b) => b[1] - a[1]).slice(0, 8);
    if (this.slider) this.slider.title = most.map(([name, value]) => `${name} ${count(value)}`).join("\n");
  }

  /** @param {string | null} address */
  select(address) {
    this.#at = this.#entries.findIndex((entry) => entry.address === address);
    const x = this.#at < 0 ? -10 : this.#x(this.#at + 0.5);
    this.#cursor?.setAttribute("x1", String(x));
    this.#cursor?.setAttribute("x2", String(x));
    this.slider?.setAttribute("aria-valuenow", String(this.#at + 1));
    this.slider?.setAttribute("aria-valuetext", address ?? "none");
    this.#say(this.#at);
  }
}
