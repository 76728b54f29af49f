// What the compiler said, each under the line that it speaks of.
import { RangeSet } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import { el } from "../lib/dom.js";
import { lineHeight } from "./blocks.js";

/** @typedef {import("./types.js").Diagnostic} Diagnostic */

class Remarks extends WidgetType {
  /** @param {Diagnostic[]} list @param {(address: string) => void} onPass */
  constructor(list, onPass) {
    super();
    this.list = list;
    this.onPass = onPass;
    this.key = JSON.stringify(list);
  }

  /** @param {Remarks} other */
  eq(other) {
    return other.key === this.key;
  }

  get estimatedHeight() {
    return this.list.length * lineHeight;
  }

  toDOM() {
    return el("div", { class: "source-remarks" }, ...this.list.map((item) => this.#row(item)));
  }

  /** @param {Diagnostic} item */
  #row({ severity, message, address, column }) {
    const link = address && el("a", { href: `?pass=${address}` }, address);
    if (link) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.onPass(address);
      });
    }
    const at = column ? `column ${column}: ` : "";
    const words = [el("b", {}, severity), ` ${at}${message} `, link];
    return el("div", { class: "source-remark", "data-severity": severity }, ...words);
  }

  ignoreEvent() {
    return true;
  }
}

/**
 * @param {import("@codemirror/state").Text} text
 * @param {Diagnostic[]} said about lines of this text
 * @param {(address: string) => void} onPass
 * @returns {import("@codemirror/state").Extension}
 */
export function remarks(text, said, onPass) {
  /** @type {Map<number, Diagnostic[]>} */
  const byLine = new Map();
  for (const item of said) {
    const line = item.line ?? 0;
    if (line >= 1 && line <= text.lines) byLine.set(line, [...(byLine.get(line) ?? []), item]);
  }
  const widgets = Array.from(byLine, ([line, list]) =>
    Decoration.widget({ widget: new Remarks(list, onPass), block: true, side: 1 }).range(text.line(line).to),
  );
  return widgets.length ? EditorView.decorations.of(RangeSet.of(widgets, true)) : [];
}
