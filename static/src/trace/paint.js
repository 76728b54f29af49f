// What is drawn over the visible lines only: tokens, hidden locations, tints, word marks, matches. One plugin walks the
// viewport, so a snapshot of any size costs the same.
import { StringStream } from "@codemirror/language";
import { Facet, RangeSet, StateEffect } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin } from "@codemirror/view";
import { parsers } from "../languages/index.js";
import { inlineLocations, withoutLocations } from "./locations.js";

/** @typedef {import("@codemirror/state").Line} Line */
/** @typedef {import("@codemirror/state").Range<Decoration>} DecorationRange */
/** @typedef {import("./types.js").Syntax} Syntax */

/**
 * @callback Painter adds what it draws on one line
 * @param {Pick<Line, "from" | "number" | "text">} line
 * @param {DecorationRange[]} out
 * @param {number} columns how much of the line can be in view
 */

/** @type {Facet<Painter>} */
export const painter = Facet.define();
/** @type {import("@codemirror/state").StateEffectType<null>} */
export const repaint = StateEffect.define();

/** @param {import("@codemirror/view").ViewUpdate} update */
export function asksRepaint(update) {
  return update.transactions.some((transaction) => transaction.effects.some((effect) => effect.is(repaint)));
}

// Lines of machine-made IR run to thousands of columns; only those that can be in view are worth an element a token.
const columnWidth = 7;
const columnStep = 256;

export const paint = ViewPlugin.fromClass(
  class {
    /** @param {EditorView} view */
    constructor(view) {
      this.columns = columnsTo(screen.width);
      this.decorations = draw(view, this.columns);
      this.view = view;
      this.onScroll = () => {
        const { scrollLeft, clientWidth } = view.scrollDOM;
        const columns = columnsTo(scrollLeft + clientWidth);
        if (columns <= this.columns) return;
        this.columns = columns;
        view.dispatch({ effects: repaint.of(null) });
      };
      view.scrollDOM.addEventListener("scroll", this.onScroll, { passive: true });
    }

    /** @param {import("@codemirror/view").ViewUpdate} update */
    update(update) {
      if (asksRepaint(update) || update.docChanged || update.viewportChanged) this.decorations = draw(update.view, this.columns);
    }

    destroy() {
      this.view.scrollDOM.removeEventListener("scroll", this.onScroll);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

/** @param {number} pixels */
function columnsTo(pixels) {
  return (Math.ceil(pixels / columnWidth / columnStep) + 1) * columnStep;
}

/** @param {EditorView} view @param {number} columns @returns {import("@codemirror/view").DecorationSet} */
function draw(view, columns) {
  const painters = view.state.facet(painter);
  /** @type {DecorationRange[]} */
  const out = [];
  let done = -1;
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to; ) {
      const line = view.state.doc.lineAt(at);
      if (line.from > done) for (const each of painters) each(line, out, columns);
      done = line.from;
      at = line.to + 1;
    }
  }
  return RangeSet.of(out, true);
}

/** The classes of css/parts/code.css, which pipelines/lexers.py writes too. @type {Record<string, string>} */
const classes = {
  variableName: "tok-v",
  keyword: "tok-o",
  meta: "tok-l",
  typeName: "tok-t",
  modifier: "tok-k",
  number: "tok-n",
  string: "tok-s",
  labelName: "tok-s",
  comment: "tok-c",
};
const marks = new Map(Object.entries(classes).map(([name, css]) => [name, Decoration.mark({ class: css })]));

/** @param {Syntax} syntax @returns {Painter | null} colours a line; the languages carry no state from line to line */
export function tokens(syntax) {
  const parser = parsers[syntax];
  if (!parser) return null;
  return (line, out, columns) => {
    const stream = new StringStream(line.text.slice(0, columns), 8, 2);
    while (!stream.eol()) {
      const mark = marks.get(parser.token(stream, null) ?? "");
      if (mark) out.push(mark.range(line.from + stream.start, line.from + stream.pos));
      stream.start = stream.pos;
    }
  };
}

const hidden = Decoration.replace({});

/** @param {Syntax} syntax @returns {import("@codemirror/state").Extension} leaves out the locations inside lines, also when they are copied */
export function hideLocations(syntax) {
  return [
    painter.of((line, out) => {
      for (const [from, to] of inlineLocations(line.text, syntax)) out.push(hidden.range(line.from + from, line.from + to));
    }),
    EditorView.clipboardOutputFilter.of((text) => withoutLocations(text, syntax)),
  ];
}

/**
 * @param {() => [number, number] | null} range from 1, both included
 * @returns {Painter}
 */
export function lineMarks(range) {
  const mark = Decoration.line({ class: "is-marked" });
  return (line, out) => {
    const lines = range();
    if (lines && line.number >= lines[0] && line.number <= lines[1]) out.push(mark.range(line.from));
  };
}

const match = Decoration.mark({ class: "is-match" });

/** @param {() => ((line: string) => import("./matching.js").Ranges) | null} query @returns {Painter} */
export function matches(query) {
  return (line, out) => {
    for (const [from, to] of query()?.(line.text) ?? []) out.push(match.range(line.from + from, line.from + to));
  };
}
