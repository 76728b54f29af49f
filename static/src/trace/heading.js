// Above the text: which snapshot, what the pass changed, how it is shown, and against what.
import { el, need } from "../lib/dom.js";
import { bytes, plural } from "../lib/format.js";
import { syntaxNames } from "../languages/index.js";
import { changedDialects, changedOperations, signed } from "./changes.js";

/** @typedef {import("./work.js").Plan} Plan */
/** @typedef {import("./address.js").State} State */
/** @typedef {import("./changes.js").Change} Change */

export class Heading {
  /** @param {import("./model.js").Model} model @param {import("./address.js").Router} router */
  constructor(model, router) {
    this.model = model;
    this.router = router;
    this.address = need("#title-address", HTMLElement);
    this.name = need("#title-name", HTMLElement);
    this.chips = need("#chips", HTMLElement);
    this.views = need("#views", HTMLElement);
    this.against = need("#against", HTMLSelectElement);
    this.locations = need("#locations", HTMLInputElement);
    this.raw = need("#raw", HTMLInputElement);
    this.note = need("#note", HTMLElement);
    this.sizes = need("#sizes", HTMLElement);
    this.foot = need("#foot-what", HTMLElement);
    this.#wire();
  }

  #wire() {
    this.views.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[data-view]") : null;
      if (!(link instanceof HTMLElement) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (link.ariaDisabled === "true") return;
      this.router.go({ view: /** @type {import("./address.js").View} */ (link.dataset.view), tab: "passes" });
    });
    this.against.addEventListener("change", () => this.router.go({ against: this.against.value || null, lines: null }));
    this.locations.addEventListener("change", () => this.router.go({ locations: this.locations.checked }, "replace"));
    this.raw.addEventListener("change", () => this.router.go({ raw: this.raw.checked, lines: null }, "replace"));
  }

  /** Fills the list of what a snapshot can be compared with. @param {import("./model.js").Model} model */
  use(model) {
    this.model = model;
    const received = el("option", { value: "" }, "what it received");
    const options = model.groups().map(([stage, entries]) => {
      const texts = entries.filter((entry) => entry.text && entry.address !== "ptxas-log");
      return el("optgroup", { label: stage }, ...texts.map((entry) => el("option", { value: entry.address }, label(entry))));
    });
    this.against.replaceChildren(received, ...options);
  }

  /** @param {Plan} plan @param {State} state */
  show({ entry, against, mode, shown, note }, state) {
    this.address.textContent = entry.address.includes(":") ? entry.address : "";
    this.name.textContent = entry.name;
    const { kernel, target } = this.model.manifest ?? {};
    document.title = `${label(entry)} · ${kernel?.name} ${target?.arch} · Loupe`;
    const view = mode === "text" ? (shown === entry ? "text" : "before") : mode;
    for (const link of this.views.querySelectorAll("a")) {
      const name = link.dataset.view;
      link.toggleAttribute("aria-current", false);
      if (name === view) link.setAttribute("aria-current", "true");
      link.ariaDisabled = String(name !== "text" && !against?.text);
      if (name === "text") link.textContent = against ? "After" : "Text";
    }
    this.#showAgainst(entry, state);
    this.locations.checked = state.locations;
    this.raw.checked = state.raw;
    const sass = entry.syntax === "sass" || (against?.syntax === "sass" && mode !== "text");
    need("#raw-label", HTMLElement).hidden = !sass;
    this.note.textContent = note;
    this.#showSizes(entry, against, mode === "text");
  }

  /** @param {Plan} plan @param {import("./types.js").Diff | null} diff */
  showFoot({ shown }, diff) {
    const { facts, stage, syntax } = shown;
    const words = [syntaxNames[syntax], stage, facts && plural(facts.lines, "line"), facts && bytes(facts.bytes)];
    if (diff?.renamed) words.push(`${plural(diff.renamed, "line")} only renamed, tinted`);
    if (diff?.fallback) words.push("too long to align but for its ends");
    if (diff?.rough) words.push("aligned here, names not followed");
    this.foot.textContent = words.filter(Boolean).join(" · ");
  }

  /** @param {import("./model.js").Entry} entry @param {State} state */
  #showAgainst(entry, state) {
    const received = this.model.previous(entry);
    const first = this.against.options[0];
    const before = this.model.find(received);
    if (first) first.textContent = before ? `received: ${label(before)}` : "nothing";
    this.against.value = state.against ?? "";
  }

  /** @param {import("./model.js").Entry} entry @param {import("./model.js").Entry | null} against @param {boolean} single */
  #showSizes(entry, against, single) {
    const [after, before] = [entry.facts, against?.facts];
    if (!after) this.sizes.textContent = "";
    else if (single || !before) this.sizes.textContent = plural(after.lines, "line");
    else this.sizes.textContent = `before · ${plural(before.lines, "line")}   after · ${plural(after.lines, "line")}`;
  }

  /**
   * @param {Plan} plan
   * @param {import("./changes.js").Change[] | null} operations by name, where a diff is at hand
   */
  showChips({ entry, against }, operations) {
    const changes = operations ?? changedDialects(against?.facts?.dialects ?? {}, entry.facts?.dialects ?? {});
    const worth = entry.facts && against?.facts && entry.syntax === "mlir" ? changes : [];
    if (worth.length) this.chips.replaceChildren(...worth.slice(0, 12).map(chip));
    else this.chips.replaceChildren(el("span", { class: "muted" }, quiet(entry)));
  }
}

/** @param {Parameters<typeof changedOperations>[0] | null} sides */
export function operationsOf(sides) {
  return sides && changedOperations(sides);
}

/** @param {Change} change */
function chip({ name, before, after }) {
  return el("span", { class: "chip" }, name, " ", el(after > before ? "ins" : "del", {}, signed(after - before)));
}

/** @param {import("./model.js").Entry} entry */
function quiet({ pass, facts, address, syntax }) {
  if (!pass && address.endsWith(":0")) return "what the stage's first pass received";
  if (!pass) return syntax === "text" ? "a log" : "made from the last stage";
  if (pass.failed) return "failed";
  if (pass.fragment) return "only the part of the module that the pass ran on, which is compared with nothing";
  if (facts?.changed && syntax !== "mlir") return changedLines(facts);
  if (facts?.changed) return "no operation was added or removed; operands or attributes changed";
  return facts?.renamed ? `changed nothing but names, in ${plural(facts.renamed, "line")}` : "changed nothing";
}

/** @param {import("./types.js").Snapshot} facts of a text whose operations are not counted */
function changedLines({ plus, minus }) {
  if (!plus && !minus) return "another form of the program, not compared line by line";
  return `${plural(plus, "line")} added, ${plural(minus, "line")} removed`;
}

/** @param {import("./model.js").Entry} entry */
function label(entry) {
  return entry.address === entry.name ? entry.name : `${entry.address} ${entry.name}`;
}
