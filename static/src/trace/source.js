// The kernel's source with what the compiler said, each under its line.
import { RangeSet } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import { el } from "../lib/dom.js";
import { lineMarks, matches, painter } from "./paint.js";
import { markedTint, numbers, Pane, paneState } from "./pane.js";
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
    return el("div", { class: "source-remark", "data-severity": severity }, el("b", {}, severity), ` ${at}${message}`, link ? " " : null, link || null);
  }

  ignoreEvent() {
    return true;
  }
}

export class Source {
  /**
   * @param {HTMLElement} host
   * @param {import("./address.js").Router} router
   * @param {{query: () => RegExp | null, onNumber: import("./pane.js").OnNumber, onPass: (address: string) => void}} page
   */
  constructor(host, router, page) {
    this.pane = new Pane(host);
    this.router = router;
    this.page = page;
    this.shown = "";
  }

  /** @param {import("./texts.js").Doc} doc @param {import("./types.js").Manifest} manifest */
  show(doc, manifest) {
    const { lines } = this.router.state;
    if (this.shown === manifest.kernel.source) {
      this.pane.repaint();
    } else {
      this.shown = manifest.kernel.source;
      const said = manifest.diagnostics.filter((item) => item.line && item.file === manifest.kernel.file);
      this.pane.show(this.#state(doc, said, manifest.kernel.file));
      if (lines) this.pane.reveal(lines[0]);
    }
  }

  /** @param {import("./texts.js").Doc} doc @param {Diagnostic[]} said @param {string} file */
  #state(doc, said, file) {
    /** @type {Map<number, Diagnostic[]>} */
    const byLine = new Map();
    for (const item of said) {
      const line = item.line ?? 0;
      if (line >= 1 && line <= doc.lines.length) byLine.set(line, [...(byLine.get(line) ?? []), item]);
    }
    const widgets = Array.from(byLine, ([line, list]) =>
      Decoration.widget({ widget: new Remarks(list, this.page.onPass), block: true, side: 1 }).range(doc.text.line(line).to),
    );
    return paneState(doc.text, "python", file, [
      numbers(doc.lines.length, { onNumber: this.page.onNumber, tint: markedTint(() => this.router.state.lines) }),
      painter.of(lineMarks(() => this.router.state.lines)),
      painter.of(matches(this.page.query)),
      EditorView.decorations.of(RangeSet.of(widgets, true)),
    ]);
  }
}
