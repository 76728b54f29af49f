// One CodeMirror view that is given a new state for each snapshot.
import { python } from "@codemirror/lang-python";
import { syntaxHighlighting } from "@codemirror/language";
import { selectAll } from "@codemirror/commands";
import { EditorState } from "@codemirror/state";
import { EditorView, gutter, GutterMarker, keymap } from "@codemirror/view";
import { tagHighlighter, tags } from "@lezer/highlight";
import { cspNonce } from "../lib/dom.js";
import { gutterFill, lineHeight } from "./blocks.js";
import { asksRepaint, paint, painter, repaint, tokens } from "./paint.js";

/** @typedef {import("@codemirror/state").Extension} Extension */
/** @typedef {import("./types.js").Syntax} Syntax */

/** @typedef {(line: number, extend: boolean) => void} OnNumber a click on a line's number; `extend` with shift */

const pythonColours = tagHighlighter([
  { tag: [tags.keyword, tags.operatorKeyword], class: "tok-o" },
  { tag: [tags.definition(tags.variableName), tags.function(tags.definition(tags.variableName))], class: "tok-v" },
  { tag: [tags.meta, tags.annotation], class: "tok-l" },
  { tag: [tags.typeName, tags.className], class: "tok-t" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-n" },
  { tag: tags.string, class: "tok-s" },
  { tag: tags.comment, class: "tok-c" },
]);

const fixed = [
  EditorView.cspNonce.of(cspNonce()),
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  keymap.of([{ key: "Mod-a", run: selectAll }]),
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
      syntax === "python" ? [python(), syntaxHighlighting(pythonColours)] : [],
      ...extensions,
    ],
  });
}

class Cell extends GutterMarker {
  /** @param {string} text @param {string} tint */
  constructor(text, tint) {
    super();
    this.text = text;
    this.elementClass = tint;
  }

  /** @param {Cell} other */
  eq(other) {
    return other.text === this.text && other.elementClass === this.elementClass;
  }

  toDOM() {
    return document.createTextNode(this.text);
  }
}

/**
 * A gutter whose text is computed for the lines in view.
 * @typedef {object} Column
 * @property {string} name its class
 * @property {(line: number) => string} words for a line of the document, from 1
 * @property {string} widest what its width is measured by
 * @property {(line: number) => string} [tint] the class of a line's cell
 * @property {OnNumber | null} [onNumber]
 */

/** @param {Column} column @returns {Extension} */
export function column({ name, words, widest, tint = () => "", onNumber }) {
  const spacer = new Cell(widest, "");
  return gutter({
    class: onNumber ? `${name} cm-pick` : name,
    lineMarker: (view, block) => {
      const { number } = view.state.doc.lineAt(block.from);
      return new Cell(words(number), tint(number));
    },
    lineMarkerChange: asksRepaint,
    widgetMarker: (_, widget) => gutterFill(widget),
    initialSpacer: () => spacer,
    domEventHandlers: {
      mousedown(view, block, event) {
        if (!onNumber || !(event instanceof MouseEvent) || event.button !== 0) return false;
        onNumber(view.state.doc.lineAt(block.from).number, event.shiftKey);
        event.preventDefault();
        return true;
      },
    },
  });
}

/**
 * The line numbers of a text.
 * @param {number} lines how many it has
 * @param {Pick<Column, "tint" | "onNumber">} options
 * @returns {Extension}
 */
export function numbers(lines, options) {
  return column({ name: "cm-number", words: String, widest: String(lines), ...options });
}

/**
 * @param {() => [number, number] | null} range from 1, both included
 * @returns {(line: number) => string}
 */
export function markedTint(range) {
  return (line) => {
    const lines = range();
    return lines && line >= lines[0] && line <= lines[1] ? "is-marked" : "";
  };
}

export class Pane {
  /** @param {HTMLElement} host */
  constructor(host) {
    this.host = host;
    this.view = new EditorView({ parent: host, state: EditorState.create({ extensions: fixed }) });
    /** @type {string | null} */
    this.shown = null;
  }

  /** @param {EditorState} state */
  show(state) {
    this.view.setState(state);
  }

  /** Measures the lines of a state just shown: until then CodeMirror guesses their height, and would move what is scrolled to. */
  settle() {
    this.view.lineBlockAtHeight(0);
  }

  /** @param {number} top pixels */
  scrollTo(top) {
    this.scroller.scrollTop = top;
  }

  /**
   * Brings rows into view, a third from the top where they are not in view yet.
   * @param {number} row from 0, counting what is shown
   */
  scrollToRow(row) {
    const { scrollTop, clientHeight } = this.scroller;
    const at = row * lineHeight;
    if (at >= scrollTop + 2 * lineHeight && at < scrollTop + clientHeight - 3 * lineHeight) return;
    this.scrollTo(Math.max(0, at - Math.floor(clientHeight / 3 / lineHeight) * lineHeight));
  }

  get scroller() {
    return this.view.scrollDOM;
  }

  /** Draws the visible lines again, as a mark, a search or a toggle changed. */
  repaint() {
    this.view.dispatch({ effects: repaint.of(null) });
  }

  /** @param {number} line from 1 @param {"center" | "start"} [where] */
  reveal(line, where = "center") {
    const { doc } = this.view.state;
    const position = doc.line(Math.max(1, Math.min(line, doc.lines))).from;
    this.view.dispatch({ effects: EditorView.scrollIntoView(position, { y: where, yMargin: 0, x: "start" }) });
  }

  /** @returns {number} the first line in view, from 1 */
  firstLine() {
    const { view } = this;
    const block = view.lineBlockAtHeight(this.scroller.scrollTop - view.documentPadding.top + 1);
    return view.state.doc.lineAt(block.from).number;
  }
}
