// The kernel's source with what the compiler said, each under its line.
import { lineMarks, matches, painter } from "./paint.js";
import { markedTint, numbers, Pane, paneState } from "./pane.js";
import { remarks } from "./remarks.js";

/** @typedef {import("./types.js").Diagnostic} Diagnostic */

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
    return paneState(doc.text, "python", file, [
      numbers(doc.lines.length, { onNumber: this.page.onNumber, tint: markedTint(() => this.router.state.lines) }),
      painter.of(lineMarks(() => this.router.state.lines)),
      painter.of(matches(this.page.query)),
      remarks(doc.text, said, this.page.onPass),
    ]);
  }
}
