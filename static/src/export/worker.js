// Decodes, aligns and searches beside the page, so that it stays smooth.
import { answer } from "../lib/calls.js";
import { matching } from "../trace/matching.js";
import { align } from "./align.js";
import { Archive } from "./archive.js";
import { decompress } from "./zstd/frame.js";
import { search } from "./search.js";

/** @typedef {import("../trace/types.js").Syntax} Syntax */
/** @typedef {import("./protocol.js").Extra} Extra */

/** @type {{archive: Archive, files: Uint8Array[], extra: Extra} | null} */
let opened = null;

/** @param {{archives: string[], extra: string}} parts in base64 */
function open({ archives, extra }) {
  const frame = decompress(bytes(extra), new Uint8Array());
  const archive = new Archive();
  const files = archives.map(bytes);
  for (const file of files) archive.add(file);
  opened = { archive, files, extra: JSON.parse(new TextDecoder().decode(frame)) };
  return opened.extra.trace;
}

/** @param {string} text base64 @returns {Uint8Array} */
function bytes(text) {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) out[at] = binary.charCodeAt(at);
  return out;
}

/** @param {{digest: string, raw: boolean}} wanted @returns {string} */
function text({ digest, raw }) {
  if (!opened) throw new Error("the trace is not open");
  const plain = raw ? undefined : opened.extra.plain[digest];
  return plain ?? new TextDecoder("utf-8", { ignoreBOM: true }).decode(opened.archive.blob(digest));
}

/** @param {{before: string, after: string, syntax: Syntax}} sides digests */
function diff({ before, after, syntax }) {
  const kept = opened?.extra.diffs[`${opened.archive.number(before)} ${opened.archive.number(after)}`];
  if (!kept) return align(lines(before), lines(after), syntax);
  const [plus, minus, renamed, fallback, runs] = kept;
  /** @type {import("../trace/types.js").Op[]} */
  const ops = [];
  for (let at = 0, i = 0, j = 0; at < runs.length; at += 3) {
    const [kind, left, right] = runs.slice(at, at + 3);
    ops.push([kind, i, (i += left), j, (j += right)]);
  }
  return { ops, plus, minus, renamed, fallback: Boolean(fallback) };
}

/** @param {string} digest */
function lines(digest) {
  return text({ digest, raw: false }).split("\n");
}

/** @param {{places: [string, string][], q: string, regex: boolean}} query */
function find({ places, q, regex }) {
  return search(places, (digest) => text({ digest, raw: false }), q, regex);
}

answer({ open, text, diff, find, file: () => opened?.files[0], ...matching });
