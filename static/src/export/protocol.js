// What the file carries beside the .loupe file.

/**
 * @typedef {object} Extra
 * @property {import("../trace/types.js").Trace} trace its manifest in the fields of the newest schema
 * @property {Record<string, [plus: number, minus: number, renamed: number, fallback: number, runs: number[]]>} diffs by
 *   the numbers of the two texts in the archive, "3 4"; each op is three numbers: its kind, and how many lines of each text it covers
 * @property {Record<string, string>} plain SASS without encodings, by digest
 */

export {};
