// Folds, hidden lines and padding: the decorations that change a text's height, known for the whole text at once.
import { RangeSet } from "@codemirror/state";
import { Decoration, GutterMarker, WidgetType } from "@codemirror/view";
import { plural } from "../lib/format.js";

/** @typedef {import("@codemirror/state").Text} Text */

export const lineHeight = 19;

/**
 * What one side shows at a place; ranges are its own lines from 0, half-open.
 * @typedef {object} Block
 * @property {[number, number]} at
 * @property {"lines" | "fold" | "hide"} type
 * @property {number} pad empty rows after it
 * @property {number} key of a fold, what `onOpen` is told
 * @property {number} count of a fold, the lines it stands for
 */

/** @typedef {{pad: number} | {key: number, count: number}} Part */

class BlockWidget extends WidgetType {
  /** @param {Part[]} parts @param {string} words @param {(key: number) => void} onOpen */
  constructor(parts, words, onOpen) {
    super();
    this.parts = parts;
    this.words = words;
    this.onOpen = onOpen;
    this.key = JSON.stringify(parts);
    this.folds = parts.some((part) => "key" in part);
  }

  /** @param {BlockWidget} other */
  eq(other) {
    return other.key === this.key && other.onOpen === this.onOpen;
  }

  get estimatedHeight() {
    return this.parts.reduce((sum, part) => sum + lineHeight * ("pad" in part ? part.pad : 1), 0);
  }

  toDOM() {
    const element = document.createElement("div");
    element.className = "blocks";
    element.style.height = `${this.estimatedHeight}px`;
    for (const part of this.parts) element.append("pad" in part ? padding(part.pad) : this.#fold(part));
    return element;
  }

  /** @param {{key: number, count: number}} part */
  #fold({ key, count }) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold-row";
    button.textContent = `${plural(count, "line")}, ${this.words}`;
    button.addEventListener("click", () => this.onOpen(key));
    return button;
  }

  ignoreEvent() {
    return true;
  }
}

/** @param {number} rows */
function padding(rows) {
  const element = document.createElement("div");
  element.className = "pad-rows";
  element.style.height = `${rows * lineHeight}px`;
  return element;
}

/**
 * Rows without text that touch each other become one decoration: CodeMirror would swallow one of two at one position.
 * @param {Text} text
 * @param {Iterable<Block>} blocks in order
 * @param {{words?: string, onOpen?: (key: number) => void}} [options]
 * @returns {RangeSet<Decoration>}
 */
export function blockDecorations(text, blocks, { words = "unchanged", onOpen = () => {} } = {}) {
  /** @type {import("@codemirror/state").Range<Decoration>[]} */
  const out = [];
  /** @type {Part[]} */
  let parts = [];
  let [from, to] = [0, 0];
  const flush = () => {
    if (!parts.length && to === from) return;
    const widget = new BlockWidget(parts, words, onOpen);
    if (to > from) out.push(Decoration.replace({ widget, block: true }).range(text.line(from + 1).from, text.line(to).to));
    else if (to > 0) out.push(Decoration.widget({ widget, block: true, side: 1 }).range(text.line(to).to));
    else out.push(Decoration.widget({ widget, block: true, side: -1 }).range(0));
  };
  for (const block of blocks) {
    if (block.type === "lines" && block.at[1] > block.at[0]) {
      flush();
      parts = [];
      from = to = block.at[1];
    }
    if (block.type === "fold") parts.push({ key: block.key, count: block.count });
    if (block.type !== "lines") to = block.at[1];
    if (block.pad) parts.push({ pad: block.pad });
  }
  flush();
  return RangeSet.of(out, true);
}

/**
 * @param {[number, number][]} hidden lines from 0, half-open
 * @returns {Iterable<Block>} the text with these lines left out
 */
export function* withoutLines(hidden) {
  let at = 0;
  for (const [from, to] of hidden) {
    if (from > at) yield { at: [at, from], type: "lines", pad: 0, key: 0, count: 0 };
    yield { at: [from, to], type: "hide", pad: 0, key: 0, count: 0 };
    at = to;
  }
}

class GutterFill extends GutterMarker {
  /** @param {string} name */
  constructor(name) {
    super();
    this.elementClass = name;
  }
}
const foldFill = new GutterFill("is-fold");
const padFill = new GutterFill("is-pad");

/** @param {WidgetType} widget @returns {GutterMarker | null} how the gutter beside a block looks */
export function gutterFill(widget) {
  if (!(widget instanceof BlockWidget) || !widget.parts.length) return null;
  return widget.folds ? foldFill : padFill;
}
