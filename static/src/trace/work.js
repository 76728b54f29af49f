// The middle of the page: decides what the state asks to show, fetches it, and puts it into the panes.
import { notice } from "../lib/notice.js";
import { ApiError } from "../lib/api.js";
import { DiffPanes } from "./diffpanes.js";
import { showText } from "./textpane.js";
import { Pane } from "./pane.js";

/** @typedef {import("./address.js").State} State */
/** @typedef {import("./model.js").Entry} Entry */
/** @typedef {import("./texts.js").Doc} Doc */
/** @typedef {import("./types.js").Diff} Diff */

/**
 * What the state means for this trace.
 * @typedef {object} Plan
 * @property {Entry} entry
 * @property {Entry | null} against what it is compared with
 * @property {"diff" | "unified" | "text"} mode
 * @property {boolean} aligned false where two languages stand side by side
 * @property {Entry} shown in text mode, whose text it is
 * @property {string} note why a diff was asked for and a text is shown
 */

/**
 * @param {State} state
 * @param {import("./model.js").Model} model
 * @returns {Plan | null}
 */
export function planView(state, model) {
  const entry = model.find(state.pass);
  if (!entry) return null;
  const against = model.find(state.against ?? model.previous(entry));
  const plan = { entry, against, shown: entry, note: "", aligned: true };
  if (!entry.text) {
    const note = `${entry.address} left no IR: the compilation ended in it. This is what it received.`;
    return { ...plan, mode: "text", shown: against ?? entry, note };
  }
  if (state.view === "before" && against) return { ...plan, mode: "text", shown: against };
  if (state.view === "text" || state.view === "before" || !against?.text) return { ...plan, mode: "text" };
  if (against.text === entry.text) return { ...plan, mode: "text", note: `the same as ${model.origin(against.address)}` };
  if (against.syntax !== entry.syntax) return { ...plan, mode: "diff", aligned: false, note: "two languages, side by side" };
  return { ...plan, mode: state.view };
}

export class Work {
  #turn = 0;
  /** @type {{address: string, line: number} | null} what was at the top of the pane, to stay there when the view changes */
  #place = null;
  #showing = "";
  #address = "";

  /**
   * @param {{left: HTMLElement, right: HTMLElement, root: HTMLElement}} hosts
   * @param {import("./address.js").Router} router
   * @param {import("./texts.js").Texts} texts
   */
  constructor(hosts, router, texts) {
    this.hosts = hosts;
    this.router = router;
    this.texts = texts;
    this.left = new Pane(hosts.left);
    this.right = new Pane(hosts.right);
    this.diff = new DiffPanes(this.left, this.right);
    /** @type {(entry: Entry) => import("./types.js").Diagnostic[]} what was said about lines of a text itself */
    this.remarksOf = () => [];
    /** @type {((line: string) => import("./matching.js").Ranges) | null} */
    this.query = null;
    /** @type {number | null} where a marked range began */
    this.anchor = null;
    /** @type {number | null} the line of the match one stands on */
    this.foundLine = null;
  }

  /** The options every pane shares, read when it draws. */
  get #shared() {
    return {
      marked: () => this.router.state.lines,
      query: () => this.query,
      onNumber: this.mark,
    };
  }

  /** @type {import("./pane.js").OnNumber} */
  mark = (line, extend) => {
    const { lines } = this.router.state;
    const same = lines && lines[0] === line && lines[1] === line;
    if (!extend || this.anchor === null) this.anchor = line;
    /** @type {[number, number]} */
    const range = [Math.min(this.anchor, line), Math.max(this.anchor, line)];
    this.router.go({ lines: same && !extend ? null : range }, "replace");
  };

  /**
   * @param {Plan} plan
   * @param {State} state
   * @returns {Promise<{before: Doc, after: Doc, diff: Diff} | null>} what a diff showed, for the chips
   */
  async show(plan, state) {
    const turn = ++this.#turn;
    try {
      const { entry, against, mode } = plan;
      this.#place = this.#placeNow();
      if (mode === "text") {
        const doc = await this.#doc(plan.shown, state);
        if (turn === this.#turn && doc) this.#showText(plan, state, doc);
        return null;
      }
      if (!against) return null;
      const [before, after, diff] = await Promise.all([
        this.#doc(against, state),
        this.#doc(entry, state),
        plan.aligned && (this.texts.peekDiff(against.address, entry.address) ?? this.texts.diff(against.address, entry.address)),
      ]);
      if (turn !== this.#turn || !before || !after) return null;
      if (!diff) {
        this.#showBoth(plan, state, before, after);
        return null;
      }
      this.#showDiff(plan, state, before, after, diff);
      return { before, after, diff };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (turn === this.#turn) notice(error.message, "error");
      return null;
    }
  }

  /** @returns {{address: string, line: number} | null} null at the top of a text */
  #placeNow() {
    if (!this.#address || this.right.scroller.scrollTop === 0) return null;
    return { address: this.#address, line: this.diff.lineOf(this.right.firstLine()) };
  }

  /** @param {Entry} entry @returns {number | null} the line that was at the top, where this is the text it was in */
  #kept(entry) {
    return this.#place?.address === entry.address ? this.#place.line : null;
  }

  /** @param {Entry} entry @param {State} state */
  #doc(entry, state) {
    if (!entry.text) return null;
    return this.texts.peek(entry.text, entry.syntax, state.raw) ?? this.texts.doc(entry.text, entry.syntax, state.raw);
  }

  /** @param {Plan} plan @param {State} state @param {Doc} doc */
  #showText({ shown }, state, doc) {
    const key = `text ${shown.address} ${shown.text} ${state.locations} ${state.raw}`;
    const fresh = key !== this.#showing;
    this.hosts.root.dataset.mode = "text";
    this.diff.forget();
    if (fresh) {
      showText(this.right, doc, shown, this.remarksOf(shown), { ...this.#shared, locations: state.locations });
      const kept = this.#kept(shown);
      if (kept) this.right.reveal(kept, "start");
    } else this.right.repaint();
    this.#settle(key, shown);
    if (state.lines && fresh) this.right.reveal(state.lines[0]);
  }

  /** Two texts with nothing to align. @param {Plan} plan @param {State} state @param {Doc} before @param {Doc} after */
  #showBoth({ entry, against }, state, before, after) {
    const key = `both ${against?.text} ${entry.text} ${state.locations} ${state.raw}`;
    const fresh = key !== this.#showing;
    this.hosts.root.dataset.mode = "diff";
    this.diff.forget();
    if (fresh && against) {
      const shared = { ...this.#shared, locations: state.locations };
      showText(this.left, before, against, [], { ...shared, onNumber: null, marked: () => null });
      showText(this.right, after, entry, this.remarksOf(entry), shared);
      for (const pane of [this.left, this.right]) pane.scrollTo(0);
    } else this.repaint();
    this.#settle(key, entry);
    if (state.lines && fresh) this.right.reveal(state.lines[0]);
  }

  /** @param {Plan} plan @param {State} state @param {Doc} before @param {Doc} after @param {Diff} diff */
  #showDiff({ entry, against, mode }, state, before, after, diff) {
    const key = `${mode} ${against?.text} ${entry.text} ${state.locations} ${state.raw}`;
    const fresh = key !== this.#showing;
    this.hosts.root.dataset.mode = mode;
    if (fresh) {
      const sides = { before, after, diff, entry, against: /** @type {Entry} */ (against) };
      const shared = { ...this.#shared, locations: state.locations };
      this.diff.show(sides, mode === "unified", shared, { marked: state.lines?.[0] ?? null, kept: this.#kept(entry) });
    } else this.repaint();
    this.#settle(key, entry);
  }

  /** Notes what the panes hold, for tests and benchmarks too. @param {string} key @param {Entry} entry */
  #settle(key, entry) {
    this.#showing = key;
    this.#address = entry.address;
    this.hosts.root.dataset.shown = key;
  }

  /** Draws marks and matches again. */
  repaint() {
    this.left.repaint();
    this.right.repaint();
  }

  /** Goes to a line of what the right pane holds, even a folded one. @param {number} line from 1 */
  reveal(line) {
    if (!this.diff.revealRow(line)) this.right.reveal(line);
  }
}
