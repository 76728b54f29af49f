// Shows errors where they belong: at the line of the source, at the field, or beside the button.
import { el } from "../lib/dom.js";
import { ApiError } from "../lib/api.js";
import { FieldError } from "./state.js";

/** @typedef {import("./editor.js").SourceEditor} SourceEditor */
/** @typedef {import("./editor.js").Place} Place */

export class Faults {
  /**
   * @param {HTMLFormElement} form
   * @param {SourceEditor} editor
   * @param {{entry: () => string, active: () => string, open: (file: string) => void}} files
   */
  constructor(form, editor, files) {
    this.form = form;
    this.editor = editor;
    this.files = files;
    /** @type {import("./state.js").SourceError | null} */
    this.fault = null;
    form.addEventListener("input", (event) => {
      if (event.target instanceof Element && event.target.hasAttribute("aria-invalid")) this.clear();
    });
  }

  clear() {
    for (const place of this.form.querySelectorAll("[data-field-error]")) {
      if (!(place instanceof HTMLElement) || place.dataset.fieldError === "source") continue;
      place.hidden = true;
      place.replaceChildren();
    }
    for (const field of this.form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  }

  /**
   * The fault of the file that is run first, as it is typed; null takes it away.
   * @param {import("./state.js").SourceError | null} fault
   */
  source(fault) {
    this.fault = fault;
    const strip = this.form.querySelector('[data-field-error="source"]');
    if (!(strip instanceof HTMLElement)) return;
    strip.hidden = !fault;
    const file = this.files.entry();
    const place = fault?.line ? { line: fault.line, column: fault.column } : null;
    const here = this.files.active() === file;
    this.editor.mark(here ? place : null);
    if (!fault) return strip.replaceChildren();
    const go = () => {
      if (this.files.active() !== file) this.files.open(file);
      if (place) this.editor.show(place);
    };
    const jump = place && el("button", { type: "button", class: "quiet", onclick: go }, here ? `line ${place.line}` : `${file} line ${place.line}`);
    strip.replaceChildren(...(jump ? [jump] : []), fault.message);
  }

  /** Shows it again, once another file is in the editor. */
  again() {
    this.source(this.fault);
  }

  /** Shows why a submission was refused. @param {unknown} error */
  submission(error) {
    if (!(error instanceof ApiError || error instanceof FieldError)) throw error;
    const detail = error instanceof ApiError ? error.detail : null;
    const field = error instanceof FieldError ? error.field : String(detail?.field ?? "");
    if (field === "source" || typeof detail?.line === "number") {
      return this.source({ message: error.message, line: detail?.line ?? null, column: detail?.column ?? null });
    }
    this.at(field, error.message);
  }

  /**
   * @param {string} field `args.x_ptr`; the message goes to the nearest place that takes one
   * @param {string} message
   */
  at(field, message) {
    const input = this.form.querySelector(`[data-field="${CSS.escape(field)}"]`);
    const [part] = field.split(".");
    const place = part === "constexprs" ? "args" : part;
    const line = this.form.querySelector(`[data-field-error="${CSS.escape(place)}"]`) ?? this.form.querySelector('[data-field-error=""]');
    if (!(line instanceof HTMLElement)) return;
    line.textContent = message;
    line.hidden = false;
    if (!(input instanceof HTMLElement)) return line.scrollIntoView({ block: "nearest" });
    const folded = input.closest("details");
    if (folded) folded.open = true;
    input.setAttribute("aria-invalid", "true");
    input.focus();
  }
}
