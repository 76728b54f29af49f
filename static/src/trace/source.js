// The kernel's source, file by file, with what the compiler said, each under its line.
import { lineMarks, matches, painter } from "./paint.js";
import { markedTint, numbers, Pane, paneState } from "./pane.js";
import { remarks } from "./remarks.js";

/** @typedef {import("./types.js").Diagnostic} Diagnostic */

export class Source {
  /**
   * @param {HTMLElement} host
   * @param {import("./address.js").Router} router
   * @param {{query: () => ((line: string) => import("./matching.js").Ranges) | null, onNumber: import("./pane.js").OnNumber, onPass: (address: string) => void}} page
   */
  constructor(host, router, page) {
    this.pane = new Pane(host);
    this.router = router;
    this.page = page;
    this.shown = "";
  }

  /**
   * @param {import("./texts.js").Doc} doc
   * @param {import("./model.js").Entry} entry the file
   * @param {import("./types.js").Manifest} manifest
   */
  show(doc, entry, manifest) {
    const { lines } = this.router.state;
    this.#mark(entry.name);
    const key = `${entry.name} ${entry.text}`;
    if (this.shown === key) {
      this.pane.repaint();
    } else {
      this.shown = key;
      const said = manifest.diagnostics.filter((item) => item.line && item.file === entry.name);
      this.pane.show(this.#state(doc, said, entry.name));
      if (lines) this.pane.reveal(lines[0]);
    }
  }

  /** Says which of the files is shown. @param {string} name */
  #mark(name) {
    for (const link of document.querySelectorAll("#source-files a")) {
      if (link instanceof HTMLElement && link.dataset.file === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
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
