// One CodeMirror view that is given a new state for each snapshot.
import { python } from "@codemirror/lang-python";
import { syntaxHighlighting } from "@codemirror/language";
import { selectAll } from "@codemirror/commands";
import { EditorState } from "@codemirror/state";
import { EditorView, gutter, GutterMarker, keymap, lineNumbers, lineNumberWidgetMarker } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { cspNonce } from "../lib/dom.js";
import { gutterFill, lineHeight } from "./blocks.js";
import { paint, painter, repaint, tokens } from "./paint.js";

/** @typedef {import("@codemirror/state").Extension} Extension */
/** @typedef {import("./types.js").Syntax} Syntax */

/** @typedef {(line: number, extend: boolean) => void} OnNumber a click on a line's number; `extend` with shift */

const fixed = [
  EditorView.cspNonce.of(cspNonce()),
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  keymap.of([{ key: "Mod-a", run: selectAll }]),
  lineNumberWidgetMarker.of((_, widget) => gutterFill(widget)),
  EditorState.phrases.of({}),
  paint,
];

/**
 * @param {import("@codemirror/state").Text} text
 * @param {Syntax} syntax
 * @param {string} label what a screen reader calls the text
 * @param {Extension[]} extensions
 * @returns {EditorState}
 */
export function paneState(text, syntax, label, extensions) {
  const colours = tokens(syntax);
  return EditorState.create({
    doc: text,
    extensions: [
      ...fixed,
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      colours ? painter.of(colours) : [],
      syntax === "python" ? [python(), syntaxHighlighting(classHighlighter)] : [],
      ...extensions,
    ],
  });
}

/** @param {OnNumber | null} onNumber @returns {Extension} */
export function numbers(onNumber) {
  if (!onNumber) return lineNumbers();
  return lineNumbers({
    domEventHandlers: {
      mousedown(view, block, event) {
        if (!(event instanceof MouseEvent) || event.button !== 0) return false;
        onNumber(view.state.doc.lineAt(block.from).number, event.shiftKey);
        event.preventDefault();
        return true;
      },
    },
  });
}

class Cell extends GutterMarker {
  /** @param {string} text */
  constructor(text) {
    super();
    this.text = text;
  }

  /** @param {Cell} other */
  eq(other) {
    return other.text === this.text;
  }

  toDOM() {
    return document.createTextNode(this.text);
  }
}

/**
 * A gutter whose text is computed for the lines in view.
 * @param {string} name its class
 * @param {(line: number) => string} words for a line of the document, from 1
 * @param {string} widest what its width is measured by
 * @param {OnNumber} [onNumber]
 * @returns {Extension}
 */
export function column(name, words, widest, onNumber) {
  const spacer = new Cell(widest);
  return gutter({
    class: name,
    lineMarker: (view, block) => new Cell(words(view.state.doc.lineAt(block.from).number)),
    widgetMarker: (_, widget) => gutterFill(widget),
    initialSpacer: () => spacer,
    domEventHandlers: onNumber && {
      mousedown(view, block, event) {
        if (!(event instanceof MouseEvent) || event.button !== 0) return false;
        onNumber(view.state.doc.lineAt(block.from).number, event.shiftKey);
        event.preventDefault();
        return true;
      },
    },
  });
}

export class Pane {
  /** @param {HTMLElement} host */
  constructor(host) {
    this.host = host;
    this.view = new EditorView({ parent: host, state: EditorState.create({ extensions: fixed }) });
    /** @type {string | null} */
    this.shown = null;
  }

  /**
   * @param {EditorState} state
   * @param {number | null} top the scroll offset to keep, in pixels, or null for the start
   */
  show(state, top) {
    this.view.setState(state);
    this.scroller.scrollTop = top ?? 0;
  }

  get scroller() {
    return this.view.scrollDOM;
  }

  /** Draws the visible lines again, as a mark, a search or a toggle changed. */
  repaint() {
    this.view.dispatch({ effects: repaint.of(null) });
  }

  /** @param {number} line from 1 @param {"start" | "center" | "nearest"} [where] */
  reveal(line, where = "center") {
    const { doc } = this.view.state;
    const position = doc.line(Math.max(1, Math.min(line, doc.lines))).from;
    this.view.dispatch({ effects: EditorView.scrollIntoView(position, { y: where, x: "start", yMargin: 3 * lineHeight }) });
  }

  /** @returns {number} the first line in view, from 1 */
  firstLine() {
    const { view } = this;
    const block = view.lineBlockAtHeight(this.scroller.scrollTop - view.documentPadding.top + 1);
    return view.state.doc.lineAt(block.from).number;
  }
}
