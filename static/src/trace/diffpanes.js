// The two panes of a diff, or the one of a unified diff: kept in step, with folds that open.
import { Text } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { blockDecorations } from "./blocks.js";
import { layOut, pieceAt } from "./layout.js";
import { lineMarks, matches, painter, withoutLocations } from "./paint.js";
import { column, numbers, paneState } from "./pane.js";
import { sideBlocks, sidePainter, unifiedBlocks, unifiedPainter, unify, wordMarks } from "./sides.js";

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
    mirror(left.scroller, right.scroller, led);
    mirror(right.scroller, left.scroller, led);
  }

  /** @param {Sides} sides @param {boolean} unified @param {Shared} shared */
  show(sides, unified, shared) {
    this.#sides = sides;
    this.#shared = shared;
    this.#open = new Set();
    this.#draw(unified, 0);
  }

  /** @param {boolean} unified @param {number} top */
  #draw(unified, top) {
    const [sides, shared] = [this.#sides, this.#shared];
    if (!sides || !shared) return;
    this.#pieces = layOut(sides.diff, sides.before, sides.after, { locations: shared.locations, open: this.#open });
    if (unified) this.#drawUnified(sides, shared, top);
    else this.#drawSides(sides, shared, top);
  }

  /** @param {Sides} sides @param {Shared} shared @param {number} top */
  #drawSides({ before, after, diff, entry, against }, shared, top) {
    this.#unified = null;
    const marks = wordMarks(before, after, entry.syntax);
    const options = { words: diff.renamed ? "unchanged or only renamed" : "unchanged", onOpen: this.#openFold };
    const common = /** @param {import("./model.js").Entry} of */ (of) => [
      painter.of(matches(shared.query)),
      shared.locations ? [] : painter.of(withoutLocations(of.syntax)),
    ];
    const left = paneState(before.text, against.syntax, `before: ${against.address}`, [
      numbers(null),
      common(against),
      painter.of(sidePainter(this.#pieces, "a", marks)),
      EditorView.decorations.of(blockDecorations(before.text, sideBlocks(this.#pieces, "a"), options)),
    ]);
    const right = paneState(after.text, entry.syntax, `after: ${entry.address}`, [
      numbers(shared.onNumber),
      common(entry),
      painter.of(sidePainter(this.#pieces, "b", marks)),
      painter.of(lineMarks(shared.marked)),
      EditorView.decorations.of(blockDecorations(after.text, sideBlocks(this.#pieces, "b"), options)),
    ]);
    this.left.show(left, top);
    this.right.show(right, top);
  }

  /** @param {Sides} sides @param {Shared} shared @param {number} top */
  #drawUnified({ before, after, diff, entry, against }, shared, top) {
    const unified = (this.#unified = unify(this.#pieces, before, after));
    const text = Text.of(unified.lines.length ? unified.lines : [""]);
    const options = { words: diff.renamed ? "unchanged or only renamed" : "unchanged", onOpen: this.#openFold };
    /** @param {number} row from 1 @param {"a" | "b"} side @returns {number} from 1, or 0 */
    const lineOf = (row, side) => {
      const run = pieceAt(unified.runs, "u", row - 1);
      return run && run[side] >= 0 ? run[side] + row - run.u[0] : 0;
    };
    const sign = /** @param {number} row */ (row) => {
      const kind = pieceAt(unified.runs, "u", row - 1)?.kind;
      return kind === "added" ? "+" : kind === "removed" ? "−" : "";
    };
    const marked = lineMarks(shared.marked);
    const state = paneState(text, entry.syntax, `${against.address} to ${entry.address}`, [
      column("cm-old", (row) => String(lineOf(row, "a") || ""), String(before.lines.length)),
      column("cm-new", (row) => String(lineOf(row, "b") || ""), String(after.lines.length), (row, extend) => {
        const line = lineOf(row, "b");
        if (line) shared.onNumber(line, extend);
      }),
      column("cm-sign", sign, "+"),
      painter.of(matches(shared.query)),
      shared.locations ? [] : painter.of(withoutLocations(entry.syntax)),
      painter.of(unifiedPainter(unified, wordMarks(before, after, entry.syntax))),
      painter.of((line, out) => marked(/** @type {any} */ ({ from: line.from, number: lineOf(line.number, "b") || -1 }), out)),
      EditorView.decorations.of(blockDecorations(text, unifiedBlocks(unified), options)),
    ]);
    this.right.show(state, top);
  }

  /** @param {number} key */
  #openFold = (key) => {
    this.#open.add(key);
    this.#draw(this.#unified !== null, this.right.scroller.scrollTop);
  };

  /** @returns {number[]} the rows, from 1, at which changes begin, in the pane that scrolls */
  #changes() {
    if (this.#unified) {
      const { runs } = this.#unified;
      const changed = /** @param {number} at */ (at) => runs[at]?.kind === "removed" || runs[at]?.kind === "added";
      return runs.flatMap((run, at) => (changed(at) && !changed(at - 1) ? [run.u[0] + 1] : []));
    }
    const pieces = this.#pieces;
    return pieces.flatMap((piece, at) => (piece.kind === "changed" && pieces[at - 1]?.kind !== "changed" ? [piece.b[0] + 1] : []));
  }

  toFirstChange() {
    const [first] = this.#changes();
    if (first !== undefined) this.right.reveal(first, "start");
  }

  /** @param {1 | -1} direction */
  toChange(direction) {
    const changes = this.#changes();
    const here = this.right.firstLine() + 3;
    const target = direction > 0 ? changes.find((line) => line > here) : changes.findLast((line) => line < here);
    if (target !== undefined) this.right.reveal(target, "start");
  }

  /** Scrolls to a line of the text after, opening the fold that hides it. @param {number} line from 1 */
  reveal(line) {
    const piece = pieceAt(this.#pieces, "b", line - 1);
    if (piece?.type === "fold") this.#openFold(piece.b[0]);
    const row = this.#unified ? this.#rowOf(line) : line;
    this.right.reveal(row);
  }

  /** @param {number} line from 1 */
  #rowOf(line) {
    const run = this.#unified?.runs.find(({ b, u }) => b >= 0 && line - 1 >= b && line - 1 < b + u[1] - u[0]);
    return run ? run.u[0] + line - run.b : 1;
  }
}

/**
 * Scrolls `to` along with `from`. What that sets off in `to` is not sent back: its own limits would hold `from`.
 * @param {HTMLElement} from
 * @param {HTMLElement} to
 * @param {WeakSet<HTMLElement>} led
 */
function mirror(from, to, led) {
  const follow = () => {
    if (led.delete(from) || !to.offsetParent) return;
    const { scrollTop, scrollLeft } = to;
    to.scrollTop = from.scrollTop;
    to.scrollLeft = from.scrollLeft;
    if (to.scrollTop !== scrollTop || to.scrollLeft !== scrollLeft) led.add(to);
  };
  from.addEventListener("scroll", follow, { passive: true });
}
