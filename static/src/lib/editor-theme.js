// How CodeMirror looks here: colours are the custom properties of tokens.css, so a theme switch needs no reconfiguration.
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const view = EditorView.theme({
  "&": { height: "100%", color: "var(--tx)", backgroundColor: "var(--bg)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "12px", lineHeight: "19px", fontVariantLigatures: "none" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--tx)" },
  ".cm-line": { padding: "0 12px 0 4px" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--tx)" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--mt)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 8px 0 12px", minWidth: "40px", fontVariantNumeric: "tabular-nums" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--tx) 4%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--tx) 4%, transparent)", color: "var(--tx)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--ac) 22%, transparent)",
  },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--ac) 14%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--ac) 24%, transparent)" },
  ".cm-faultLine": { backgroundColor: "var(--del)" },
  ".cm-faultGutter": { backgroundColor: "var(--del)", color: "var(--delt)" },
  ".cm-faultSpot": { textDecoration: "underline wavy var(--delt) 1px", textUnderlineOffset: "3px" },
  ".cm-panels": { backgroundColor: "var(--sf)", color: "var(--tx)", borderColor: "var(--ln)", font: "13px var(--sans)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--ln)" },
  ".cm-panel.cm-search": { padding: "6px 12px" },
  ".cm-panel.cm-search label": { fontSize: "12px" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--bg)", border: "1px solid var(--ln)", borderRadius: "6px" },
  ".cm-textfield": { backgroundColor: "var(--bg)", border: "1px solid var(--lc)", borderRadius: "6px", fontSize: "12px" },
  ".cm-searchMatch": { backgroundColor: "color-mix(in srgb, var(--l) 26%, transparent)" },
  ".cm-searchMatch-selected": { backgroundColor: "color-mix(in srgb, var(--l) 48%, transparent)" },
});

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.modifier], color: "var(--o)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--s)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--n)" },
  { tag: [tags.comment, tags.docString], color: "var(--k)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--v)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--v)" },
  { tag: [tags.typeName, tags.className], color: "var(--t)" },
  { tag: [tags.meta, tags.self], color: "var(--l)" },
]);

/** @type {import("@codemirror/state").Extension} */
export const editorTheme = [view, syntaxHighlighting(highlight)];
