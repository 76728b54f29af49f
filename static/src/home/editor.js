// The source editor: CodeMirror with Python, and marks on the lines that an error points at.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, drawSelection, gutterLineClass, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { cspNonce } from "../lib/dom.js";
import { editorTheme } from "../lib/editor-theme.js";

/** @typedef {{line: number, column?: number | null}} Place both count from 1 */

/** @type {import("@codemirror/state").StateEffectType<Place | null>} */
const setFault = StateEffect.define();

const faultLine = Decoration.line({ class: "cm-faultLine" });
const faultSpot = Decoration.mark({ class: "cm-faultSpot" });
const faultGutter = new (class extends GutterMarker {
  elementClass = "cm-faultGutter";
})();

/**
 * @param {import("@codemirror/state").Text} doc
 * @param {Place} place
 */
function faultMarks(doc, place) {
  const line = doc.line(Math.min(Math.max(place.line, 1), doc.lines));
  const marks = [faultLine.range(line.from)];
  const from = line.from + Math.min((place.column ?? 1) - 1, line.length);
  if (place.column && from < line.to) {
    marks.push(faultSpot.range(from, line.from + wordEnd(line.text, from - line.from)));
  }
  return { marks: Decoration.set(marks), gutter: RangeSet.of([faultGutter.range(line.from)]) };
}

/** @param {string} text @param {number} start */
function wordEnd(text, start) {
  const word = /^\w+|^./.exec(text.slice(start));
  return start + (word ? word[0].length : 1);
}

/** @type {StateField<{marks: import("@codemirror/view").DecorationSet, gutter: RangeSet<GutterMarker>}>} */
const faults = StateField.define({
  create: () => ({ marks: Decoration.none, gutter: RangeSet.empty }),
  update(value, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setFault)) continue;
      return effect.value ? faultMarks(transaction.state.doc, effect.value) : { marks: Decoration.none, gutter: RangeSet.empty };
    }
    if (!transaction.docChanged) return value;
    return { marks: value.marks.map(transaction.changes), gutter: value.gutter.map(transaction.changes) };
  },
  provide: (field) => [EditorView.decorations.from(field, (value) => value.marks), gutterLineClass.from(field, (value) => value.gutter)],
});

/** The editor that stands in for the form's textarea; the textarea keeps the text for the form. */
export class SourceEditor {
  /**
   * @param {HTMLTextAreaElement} area
   * @param {(source: string) => void} onChange after each edit by the user
   */
  constructor(area, onChange) {
    this.area = area;
    /** The files that were open before, with their cursors and what undo takes back. @type {Map<string, EditorState>} */
    this.states = new Map();
    this.name = "";
    this.extensions = [
      lineNumbers(),
      history(),
      drawSelection(),
      indentUnit.of("    "),
      EditorState.tabSize.of(4),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSelectionMatches(),
      python(),
      editorTheme,
      faults,
      keymap.of([{ key: "Mod-Enter", run: submitForm }, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, indentWithTab]),
      EditorView.cspNonce.of(cspNonce()),
      EditorView.contentAttributes.of({ "aria-label": "Kernel source, Python. Escape, then Tab leaves the editor." }),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        area.value = update.state.doc.toString();
        onChange(area.value);
      }),
    ];
    this.view = new EditorView({ state: this.#state(area.value) });
    area.before(this.view.dom);
    area.hidden = true;
  }

  /** @param {string} doc */
  #state(doc) {
    return EditorState.create({ doc, extensions: this.extensions });
  }

  /** @returns {string} */
  get source() {
    return this.view.state.doc.toString();
  }

  /** Shows a file, as it was left where it was open before. @param {string} name @param {string} text */
  open(name, text) {
    if (this.name) this.states.set(this.name, this.view.state);
    this.name = name;
    const before = this.states.get(name);
    const kept = before && before.doc.toString() === text;
    this.view.setState(kept ? before : this.#state(text));
    this.view.dispatch({ effects: [setFault.of(null), EditorView.scrollIntoView(kept ? this.view.state.selection.main.head : 0)] });
    this.area.value = text;
  }

  /** Forgets files, or all. @param {string[]} [names] */
  forget(names) {
    if (!names || names.includes(this.name)) this.name = "";
    if (!names) this.states.clear();
    for (const name of names ?? []) this.states.delete(name);
  }

  /** @param {string} name @param {string} next */
  rename(name, next) {
    const state = this.states.get(name);
    if (state) this.states.set(next, state);
    this.states.delete(name);
    if (this.name === name) this.name = next;
  }

  /** Marks the line of an error, or none. @param {Place | null} place */
  mark(place) {
    this.view.dispatch({ effects: setFault.of(place) });
  }

  /** Shows a line and puts the cursor there. @param {Place} place */
  show(place) {
    const line = this.view.state.doc.line(Math.min(Math.max(place.line, 1), this.view.state.doc.lines));
    const anchor = Math.min(line.from + (place.column ?? 1) - 1, line.to);
    this.view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    this.view.focus();
  }
}

/** @param {EditorView} view */
function submitForm(view) {
  view.dom.closest("form")?.requestSubmit();
  return true;
}
