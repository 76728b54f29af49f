// The two panes of a diff, or the one of a unified diff: kept in step, with folds that open.
import { Text } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { blockDecorations, lineHeight } from "./blocks.js";
import { context, layOut, pieceAt, rowsOf } from "./layout.js";
import { hideLocations, lineMarks, matches, painter } from "./paint.js";
import { column, markedTint, numbers, paneState } from "./pane.js";
import { sideBlocks, sidePainter, sideTint, unifiedBlocks, unifiedPainter, unifiedTint, unify, wordMarks } from "./sides.js";

/** @typedef {import("./texts.js").Doc} Doc */
/** @typedef {import("./pane.js").Pane} Pane */
/** @typedef {import("./textpane.js").Shared} Shared */
/** @typedef {import("./layout.js").Piece} Piece */

/**
 * @typedef {object} Sides
 * @property {Doc} before
 * @property {Doc} after
 * @property {import("./types.js").Diff} diff
 * @property {import("./model.js").Entry} entry
 * @property {import("./model.js").Entry} against
 */

/** @param {{from: number, text: string}} line what a painter reads of it but its number */
const place = ({ from, text }) => ({ from, text });

// Rows that stay in view above a marked line.
const above = 10;

/** @type {Record<string, string>} */
const signs = { "is-added": "+", "is-removed": "−" };

export class DiffPanes {
  /** @type {Sides | null} */
  #sides = null;
  /** @type {Shared | null} */
  #shared = null;
  /** @type {Set<number>} */
  #open = new Set();
  /** @type {Piece[]} */
  #pieces = [];
  /** @type {import("./sides.js").Unified | null} */
  #unified = null;

  /** @param {Pane} left @param {Pane} right */
  constructor(left, right) {
    this.left = left;
    this.right = right;
    const led = new WeakSet();
    const linked = () => this.active && this.#unified === null;
    mirror(left.scroller, right.scroller, led, linked);
    mirror(right.scroller, left.scroller, led, linked);
  }

  /**
   * @param {Sides} sides
   * @param {boolean} unified
   * @param {Shared} shared
   * @param {{marked: number | null, kept: number | null}} lines of the text after, from 1: one that is to be in view, and
   *   one that was at the top; without either the first change is shown
   */
  show(sides, unified, shared, { marked, kept }) {
    const line = marked ?? kept;
    this.#sides = sides;
    this.#shared = shared;
    this.#open = new Set();
    this.#lay();
    if (line !== null) this.#openAt(line);
    this.#draw(unified);
    const row = line === null ? (this.#changes()[0] ?? 0) - context : this.#rowOf(line) - (marked ? above : 0);
    this.#scrollTo(Math.max(0, row) * lineHeight);
  }

  /** The panes hold something else now. */
  forget() {
    this.#sides = null;
    this.#pieces = [];
    this.#unified = null;
  }

  /** @returns {boolean} whether a diff is in the panes */
  get active() {
    return this.#sides !== null;
  }

  #lay() {
    const [sides, shared] = [this.#sides, this.#shared];
    if (!sides || !shared) return;
    this.#pieces = layOut(sides.diff, sides.before, sides.after, { locations: shared.locations, open: this.#open });
  }

  /** @param {boolean} unified */
  #draw(unified) {
    const [sides, shared] = [this.#sides, this.#shared];
    if (!sides || !shared) return;
    if (unified) this.#drawUnified(sides, shared);
    else this.#drawSides(sides, shared);
  }

  /** @param {number} top */
  #scrollTo(top) {
    const panes = this.#unified ? [this.right] : [this.left, this.right];
    for (const pane of panes) pane.settle();
    for (const pane of panes) pane.scrollTo(top);
  }

  /** @param {Sides} sides @param {Shared} shared */
  #drawSides({ before, after, diff, entry, against }, shared) {
    this.#unified = null;
    const marks = wordMarks(before, after, entry.syntax);
    const options = { words: diff.renamed ? "unchanged or only renamed" : "unchanged", onOpen: this.#openFold };
    const common = /** @param {import("./model.js").Entry} of */ (of) => [
      painter.of(matches(shared.query)),
      shared.locations ? [] : hideLocations(of.syntax),
    ];
    const [tint, marked] = [sideTint(this.#pieces, "b"), markedTint(shared.marked)];
    const left = paneState(before.text, against.syntax, `before: ${against.address}`, [
      numbers(before.lines.length, { tint: sideTint(this.#pieces, "a") }),
      common(against),
      painter.of(sidePainter(this.#pieces, "a", marks)),
      EditorView.decorations.of(blockDecorations(before.text, sideBlocks(this.#pieces, "a"), options)),
    ]);
    const right = paneState(after.text, entry.syntax, `after: ${entry.address}`, [
      numbers(after.lines.length, { tint: (line) => marked(line) || tint(line), onNumber: shared.onNumber }),
      common(entry),
      painter.of(sidePainter(this.#pieces, "b", marks)),
      painter.of(lineMarks(shared.marked)),
      EditorView.decorations.of(blockDecorations(after.text, sideBlocks(this.#pieces, "b"), options)),
    ]);
    this.left.show(left);
    this.right.show(right);
  }

  /** @param {Sides} sides @param {Shared} shared */
  #drawUnified({ before, after, diff, entry, against }, shared) {
    const unified = (this.#unified = unify(this.#pieces, before, after));
    const text = Text.of(unified.lines.length ? unified.lines : [""]);
    const options = { words: diff.renamed ? "unchanged or only renamed" : "unchanged", onOpen: this.#openFold };
    /** @param {number} row from 1 @param {"a" | "b"} side @returns {number} from 1, or 0 */
    const lineOf = (row, side) => {
      const run = pieceAt(unified.runs, "u", row - 1);
      return run && run[side] >= 0 ? run[side] + row - run.u[0] : 0;
    };
    const mark = lineMarks(shared.marked);
    const [tint, marked] = [unifiedTint(unified), markedTint(shared.marked)];
    const both = /** @param {number} row */ (row) => marked(lineOf(row, "b")) || tint(row);
    const state = paneState(text, entry.syntax, `${against.address} to ${entry.address}`, [
      column({ name: "cm-old", words: (row) => String(lineOf(row, "a") || ""), widest: String(before.lines.length), tint: both }),
      column({
        name: "cm-new",
        words: (row) => String(lineOf(row, "b") || ""),
        widest: String(after.lines.length),
        tint: both,
        onNumber: (row, extend) => {
          if (lineOf(row, "b")) shared.onNumber?.(lineOf(row, "b"), extend);
        },
      }),
      column({ name: "cm-sign", words: (row) => signs[tint(row)] ?? "", widest: "+", tint: both }),
      painter.of(matches(shared.query)),
      shared.locations ? [] : hideLocations(entry.syntax),
      painter.of(unifiedPainter(unified, wordMarks(before, after, entry.syntax))),
      painter.of((line, out, columns) => mark({ ...place(line), number: lineOf(line.number, "b") }, out, columns)),
      EditorView.decorations.of(blockDecorations(text, unifiedBlocks(unified), options)),
    ]);
    this.right.show(state);
  }

  /** @param {number} key */
  #openFold = (key) => {
    const top = this.right.scroller.scrollTop;
    this.#open.add(key);
    this.#lay();
    this.#draw(this.#unified !== null);
    this.#scrollTo(top);
  };

  /** Opens the fold that hides a line of the text after, if one does. @param {number} line from 1 */
  #openAt(line) {
    const piece = pieceAt(this.#pieces, "b", line - 1);
    if (piece?.type !== "fold") return false;
    this.#open.add(piece.b[0]);
    this.#lay();
    return true;
  }

  /** @returns {[changed: boolean, rows: number][]} what is shown, as runs of rows */
  #runs() {
    if (!this.#unified) return this.#pieces.map((piece) => [piece.kind === "changed", rowsOf(piece)]);
    return this.#unified.runs.map(({ kind, type, u }) => {
      const rows = type === "hide" ? 0 : type === "fold" ? 1 : u[1] - u[0];
      return [kind === "added" || kind === "removed", rows];
    });
  }

  /** @returns {number[]} the rows, from 0, at which changes begin */
  #changes() {
    const out = [];
    let [row, before] = [0, false];
    for (const [changed, rows] of this.#runs()) {
      if (changed && !before) out.push(row);
      if (rows) before = changed;
      row += rows;
    }
    return out;
  }

  /** @param {1 | -1} direction */
  toChange(direction) {
    if (!this.active) return;
    const changes = this.#changes();
    const here = Math.round(this.right.scroller.scrollTop / lineHeight) + context;
    const target = direction > 0 ? changes.find((row) => row > here) : changes.findLast((row) => row < here);
    if (target !== undefined) this.#scrollTo(Math.max(0, target - context) * lineHeight);
  }

  /**
   * Scrolls to a row of what the right pane holds, opening the fold that hides it.
   * @param {number} row of the text after, or of the interleaved one, from 1
   * @returns {boolean} false where there is no diff
   */
  revealRow(row) {
    if (!this.active) return false;
    const run = this.#unified && pieceAt(this.#unified.runs, "u", row - 1);
    const line = run ? run.b + row - run.u[0] : row;
    const opened = (!run || run.type === "fold") && this.#openAt(line);
    if (opened) this.#draw(this.#unified !== null);
    if (run) this.right.reveal(row);
    else this.right.scrollToRow(this.#rowOf(line));
    return true;
  }

  /** @param {number} row of what the right pane holds, from 1 @returns {number} the line of the text after, there or next */
  lineOf(row) {
    const run = this.#unified && pieceAt(this.#unified.runs, "u", row - 1);
    if (!this.#unified || !run) return row;
    const next = run.b >= 0 ? run : this.#unified.runs.find(({ b, u }) => b >= 0 && u[0] > run.u[0]);
    return next ? next.b + 1 + Math.max(0, row - 1 - next.u[0]) : row;
  }

  /** @param {number} line of the text after, from 1 @returns {number} its row, from 0 */
  #rowOf(line) {
    let row = 0;
    if (this.#unified) {
      for (const { u, b, type } of this.#unified.runs) {
        const rows = type === "hide" ? 0 : type === "fold" ? 1 : u[1] - u[0];
        if (b >= 0 && line - 1 >= b && line - 1 < b + u[1] - u[0]) return row + Math.min(rows, line - 1 - b);
        row += rows;
      }
      return row;
    }
    for (const piece of this.#pieces) {
      if (line - 1 < piece.b[1]) return row + Math.min(rowsOf(piece), line - 1 - piece.b[0]);
      row += rowsOf(piece);
    }
    return row;
  }
}

/**
 * Scrolls `to` along with `from`. What that sets off in `to` is not sent back: its own limits would hold `from`.
 * @param {HTMLElement} from
 * @param {HTMLElement} to
 * @param {WeakSet<HTMLElement>} led
 * @param {() => boolean} linked
 */
function mirror(from, to, led, linked) {
  const follow = () => {
    if (led.delete(from) || !linked()) return;
    const { scrollTop, scrollLeft } = to;
    to.scrollTop = from.scrollTop;
    to.scrollLeft = from.scrollLeft;
    if (to.scrollTop !== scrollTop || to.scrollLeft !== scrollLeft) led.add(to);
  };
  from.addEventListener("scroll", follow, { passive: true });
}
