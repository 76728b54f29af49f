// The shapes that the HTTP API answers with; `pipelines/trace.py` and docs/http-api.md describe the fields.

/** @typedef {import("../languages/index.js").Syntax} Syntax */

/**
 * @typedef {object} PassRecord
 * @property {number} ordinal from 1
 * @property {number | null} parent the ordinal of the pass that ran this one
 * @property {string} name
 * @property {string} argument
 * @property {string} anchor
 * @property {string | null} function
 * @property {string | null} step
 * @property {string | null} text digest
 * @property {boolean} failed
 * @property {"llvm" | "text"} [syntax] of a pass of LLVM
 * @property {boolean} [fragment] whether the text is a part of a module, which is compared with nothing
 */

/** @typedef {{name: string, input: string | null, passes: PassRecord[]}} Stage */
/** @typedef {{name: string, digest: string, binary: boolean}} Artifact */

/**
 * @typedef {object} Diagnostic
 * @property {"error" | "warning" | "remark" | "note"} severity
 * @property {string} message
 * @property {string | null} file
 * @property {number | null} line from 1
 * @property {number | null} column
 * @property {string | null} address
 */

/** @typedef {{kind: string, stage: string | null, address: string | null, message: string, hint: string | null}} Failure */

/**
 * @typedef {object} Manifest
 * @property {"ok" | "failed"} status
 * @property {{name: string, file: string, source: string, files: {name: string, digest: string}[]}} kernel
 * @property {{arch: string}} target
 * @property {Stage[]} stages
 * @property {Artifact[]} artifacts
 * @property {Diagnostic[]} diagnostics
 * @property {Failure | null} failure
 */

/**
 * What was computed about one snapshot, against the snapshot its pass received.
 * @typedef {object} Snapshot
 * @property {number} lines
 * @property {number} bytes
 * @property {boolean} changed
 * @property {number} plus
 * @property {number} minus
 * @property {number} renamed
 * @property {Record<string, number>} dialects operations by dialect
 */

/** @typedef {{rows: Record<string, Snapshot>}} Summary */

/**
 * @typedef {object} Trace
 * @property {string} id
 * @property {"queued" | "running" | "ok" | "failed"} status
 * @property {string | null} group
 * @property {Manifest | null} manifest
 * @property {Summary | null} summary
 * @property {string[]} pending artifacts that are still being made
 * @property {{stages: Stage[]} | null} [llvm_passes] LLVM's own passes, where they were asked for
 */

/**
 * A row of an alignment: kind 0 identical, 1 only renamed, 2 changed, 3 location-only; line ranges from 0, half-open.
 * @typedef {[kind: number, a1: number, a2: number, b1: number, b2: number]} Op
 */

/**
 * An alignment; `fallback`: only the common head and tail are aligned; `rough`: names were not followed.
 * @typedef {{ops: Op[], plus: number, minus: number, renamed: number, fallback: boolean, rough?: boolean}} Diff
 */
/** @typedef {{address: string, line: number, text: string}} Hit */

/** @typedef {{hits: Hit[], truncated: boolean}} Found */

/**
 * Where a page's data comes from: the server, or the page's own file. What fails throws an ApiError.
 * @typedef {object} Backend
 * @property {() => Promise<Trace>} trace
 * @property {(digest: string, raw: boolean) => Promise<string>} text SASS without encodings unless `raw`
 * @property {(from: string, to: string) => Promise<Diff>} diff of two addresses
 * @property {(q: string, regex: boolean) => Promise<Found>} search
 * @property {() => Worker} worker one that matches expressions (matching.js)
 */

export {};
