// One snapshot as text.
import { EditorView } from "@codemirror/view";
import { blockDecorations, withoutLines } from "./blocks.js";
import { hideLocations, lineMarks, matches, painter } from "./paint.js";
import { remarks } from "./remarks.js";
import { markedTint, numbers, paneState } from "./pane.js";

/**
 * @typedef {object} Shared
 * @property {boolean} locations
 * @property {() => [number, number] | null} marked
 * @property {() => ((line: string) => import("./matching.js").Ranges) | null} query
 * @property {import("./pane.js").OnNumber | null} onNumber
 */

/**
 * @param {import("./pane.js").Pane} pane
 * @param {import("./texts.js").Doc} doc
 * @param {import("./model.js").Entry} entry
 * @param {import("./types.js").Diagnostic[]} said about lines of this text
 * @param {Shared} shared
 */
export function showText(pane, doc, entry, said, shared) {
  const { syntax, address } = entry;
  const state = paneState(doc.text, syntax, address, [
    numbers(doc.lines.length, { onNumber: shared.onNumber, tint: markedTint(shared.marked) }),
    remarks(doc.text, said.map((item) => ({ ...item, address: null })), () => {}),
    painter.of(lineMarks(shared.marked)),
    painter.of(matches(shared.query)),
    shared.locations
      ? []
      : [hideLocations(syntax), EditorView.decorations.of(blockDecorations(doc.text, withoutLines(doc.hidden)))],
  ]);
  const top = pane.scroller.scrollTop;
  pane.show(state);
  pane.settle();
  pane.scrollTo(top);
}
