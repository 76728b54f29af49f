// One snapshot as text.
import { EditorView } from "@codemirror/view";
import { blockDecorations, withoutLines } from "./blocks.js";
import { lineMarks, matches, painter, withoutLocations } from "./paint.js";
import { numbers, paneState } from "./pane.js";

/**
 * @typedef {object} Shared
 * @property {boolean} locations
 * @property {() => [number, number] | null} marked
 * @property {() => RegExp | null} query
 * @property {import("./pane.js").OnNumber} onNumber
 */

/**
 * @param {import("./pane.js").Pane} pane
 * @param {import("./texts.js").Doc} doc
 * @param {import("./model.js").Entry} entry
 * @param {Shared} shared
 */
export function showText(pane, doc, entry, shared) {
  const { syntax, address } = entry;
  const state = paneState(doc.text, syntax, address, [
    numbers(shared.onNumber),
    painter.of(lineMarks(shared.marked)),
    painter.of(matches(shared.query)),
    shared.locations
      ? []
      : [painter.of(withoutLocations(syntax)), EditorView.decorations.of(blockDecorations(doc.text, withoutLines(doc.hidden)))],
  ]);
  pane.show(state, pane.scroller.scrollTop);
}
