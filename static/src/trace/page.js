// The trace page as a whole: one state, and the parts that show it.
import { need } from "../lib/dom.js";
import { queryPlace, Router } from "./address.js";
import { Card } from "./card.js";
import { Drawer, selectTab, wireColumns, wireTabs } from "./columns.js";
import { Find } from "./find.js";
import { Heading, operationsOf } from "./heading.js";
import { Model } from "./model.js";
import { PassList } from "./passlist.js";
import { Source } from "./source.js";
import { Strip } from "./strip.js";
import { Texts } from "./texts.js";
import { planView, Work } from "./work.js";

/** @typedef {import("./address.js").State} State */

export class TracePage {
  /** @type {Model} */
  model;

  /**
   * @param {import("./types.js").Backend} backend
   * @param {import("./address.js").Place} [place] where the state stands in the URL
   */
  constructor(backend, place = queryPlace) {
    this.main = need("#main", HTMLElement);
    const id = this.main.dataset.trace ?? "";
    this.backend = backend;
    this.texts = new Texts(backend);
    this.router = new Router(this.main.dataset.address ?? null, place);
    this.model = new Model({ id, status: "queued", group: null, manifest: null, summary: null, pending: [] });
    const hosts = { root: need("#panes", HTMLElement), left: need("#left", HTMLElement), right: need("#right", HTMLElement) };
    this.work = new Work(hosts, this.router, this.texts);
    this.heading = new Heading(this.model, this.router);
    this.list = new PassList(need("#passes", HTMLElement), (address) => this.open(address));
    this.strip = new Strip(need("#strip", HTMLElement), (address) => this.open(address));
    this.card = new Card(need("#card", HTMLElement));
    this.source = new Source(need("#source", HTMLElement), this.router, {
      query: () => this.work.query,
      onNumber: this.work.mark,
      onPass: (address) => this.open(address),
    });
    this.work.remarksOf = (entry) => this.model.remarksOn(entry);
    this.find = new Find(backend, this.#findPage());
    this.drawer = new Drawer(this.main);
    wireColumns(this.main);
    wireTabs((tab) => this.router.go({ tab: /** @type {import("./address.js").Tab} */ (tab), lines: null }));
    this.#wireLinks();
    this.router.listen((state, before) => this.#show(state, before));
  }

  /** @returns {ConstructorParameters<typeof Find>[1]} */
  #findPage() {
    const pane = () => (this.router.state.tab === "source" ? this.source.pane : this.work.right);
    return {
      text: () => pane().view.state.doc,
      name: (address) => this.model.find(address)?.name ?? "",
      line: () => this.work.foundLine ?? pane().firstLine(),
      onQuery: (query) => {
        this.work.query = query;
        this.work.foundLine = null;
        this.work.repaint();
        this.source.pane.repaint();
      },
      onKnown: () => {
        this.work.repaint();
        this.source.pane.repaint();
      },
      onLine: (line) => {
        this.work.foundLine = line;
        if (this.router.state.tab === "source") this.source.pane.reveal(line);
        else this.work.reveal(line);
      },
      onHit: ({ address, line }) => {
        if (isSource(address)) this.toSource(line, fileIn(address));
        else this.toLine(address, line);
      },
    };
  }

  /** @param {string} address @param {number | null} line */
  toLine(address, line) {
    this.router.go({ tab: "passes", pass: address, view: "text", against: null, lines: line ? [line, line] : null });
  }

  /** Links to passes, their lines, source lines and tabs anywhere on the page stay on the page. */
  #wireLinks() {
    document.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[data-address], a[data-source-line], a[data-opens]") : null;
      if (!(link instanceof HTMLElement) || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (link.dataset.opens) this.router.go({ tab: /** @type {import("./address.js").Tab} */ (link.dataset.opens), lines: null });
      else if (link.dataset.sourceLine) this.toSource(Number(link.dataset.sourceLine), link.dataset.sourceFile ?? null);
      else if (link.dataset.line) this.toLine(link.dataset.address ?? "", Number(link.dataset.line));
      else this.open(link.dataset.address ?? "");
    });
  }

  /** Reads the trace, and shows it once it holds anything. */
  async load() {
    const trace = await this.backend.trace();
    this.model = new Model(trace);
    this.heading.use(this.model);
    this.strip.draw(this.model);
    this.list.renew(this.router.state.pass);
    await this.#show(this.router.state, this.router.state);
    return trace;
  }

  /** @param {string | null} address the pass that the server shows where the URL names none */
  useFallback(address) {
    this.router.fallback = address;
    const { state } = this.router;
    if (address === "source" && !state.pass) this.router.go({ tab: state.tab === "passes" ? "source" : state.tab }, "replace");
    else if (!state.pass) this.router.go({ pass: address }, "replace");
  }

  /** Goes to a pass, as a person asked for it. @param {string} address */
  open(address) {
    this.drawer.set(false);
    if (isSource(address)) this.router.go({ tab: "source", file: fileIn(address), lines: null });
    else this.router.go({ tab: "passes", pass: address, against: null, lines: null });
  }

  /** @param {number} line @param {string | null} file of the package; null is the one that was run */
  toSource(line, file) {
    this.source.shown = "";
    this.router.go({ tab: "source", file, lines: [line, line] });
  }

  /** @returns {import("./markdown.js").Shown | null} what is in view */
  shown() {
    const { state } = this.router;
    const source = state.tab === "source" ? this.model.find("source") : null;
    const plan = planView(state, this.model);
    if (source) return { entry: source, against: null, lines: state.lines, locations: state.locations };
    if (!plan) return null;
    const against = plan.mode !== "text" && plan.aligned && !state.lines ? plan.against : null;
    return { entry: plan.shown, against, lines: state.lines, locations: state.locations };
  }

  /** @param {1 | -1} direction @param {boolean} changed */
  step(direction, changed) {
    const { state } = this.router;
    const next = state.pass && this.model.neighbour(state.pass, direction, changed);
    if (next) this.router.go({ tab: "passes", pass: next.address, against: null, lines: null }, "replace");
  }

  /** @param {State} state @param {State} before */
  async #show(state, before) {
    this.main.dataset.tab = state.tab;
    selectTab(state.tab);
    this.list.select(state.pass);
    this.strip.select(state.pass);
    if (!this.model.manifest) return;
    if (state.tab === "source") return this.#showSource(state);
    const plan = planView(state, this.model);
    if (!plan) return;
    this.heading.show(plan, state);
    this.heading.showChips(plan, null);
    this.card.show(plan, this.model, null);
    if (before.pass !== state.pass) this.work.foundLine = null;
    // A held key asks for more states than can be drawn: only the one that a frame finds is.
    await frame();
    if (this.router.state !== state) return;
    const sides = await this.work.show(plan, state);
    if (this.router.state !== state) return;
    this.heading.showFoot(plan, sides?.diff ?? null);
    void this.find.recount();
    idle(() => {
      if (this.router.state !== state) return;
      const operations = operationsOf(sides);
      if (operations) {
        this.heading.showChips(plan, operations);
        this.card.show(plan, this.model, operations);
      }
      this.#prefetch(state);
    });
  }

  /** @param {State} state */
  async #showSource(state) {
    const entry = this.model.find(state.file ? `source:${state.file}` : "source") ?? this.model.find("source");
    if (!entry?.text || !this.model.manifest) return;
    const doc = await this.texts.doc(entry.text, "python", false);
    if (this.router.state === state) this.source.show(doc, entry, this.model.manifest);
  }

  /** Fetches what a step away needs, so that stepping does not wait. @param {State} state */
  async #prefetch(state) {
    if (!state.pass) return;
    const near = [
      this.model.neighbour(state.pass, 1, true),
      this.model.neighbour(state.pass, 1, false),
      this.model.neighbour(state.pass, -1, true),
      this.model.neighbour(state.pass, -1, false),
    ];
    for (const entry of new Set(near)) {
      if (!entry?.text || this.router.state !== state) continue;
      await this.texts.doc(entry.text, entry.syntax, state.raw).catch(() => null);
      const against = this.model.find(this.model.previous(entry));
      if (against?.text && against.text !== entry.text && (state.view === "diff" || state.view === "unified")) {
        await this.texts.diff(against.address, entry.address).catch(() => null);
      }
    }
  }
}

/** @param {string} address */
const isSource = (address) => address === "source" || address.startsWith("source:");

/** @param {string} address of a source @returns {string | null} the file it names */
const fileIn = (address) => address.slice("source:".length) || null;

/** @returns {Promise<void>} the next frame; at once where none comes, in the background */
function frame() {
  return new Promise((resolve) => (document.hidden ? resolve() : requestAnimationFrame(() => resolve())));
}

/** @param {() => void} call */
function idle(call) {
  if ("requestIdleCallback" in window) requestIdleCallback(call, { timeout: 500 });
  else setTimeout(call, 30);
}
