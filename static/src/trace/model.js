// A trace as an ordered list of what can be shown: each stage's input and passes, then the artifacts.

/** @typedef {import("./types.js").Trace} Trace */
/** @typedef {import("./types.js").Syntax} Syntax */

/**
 * @typedef {object} Entry
 * @property {string} address
 * @property {string} stage for an artifact, its own name
 * @property {string} name
 * @property {import("./types.js").PassRecord | null} pass null for inputs, artifacts and the source
 * @property {Syntax} syntax
 * @property {string | null} text digest; null where the pass left no IR
 * @property {import("./types.js").Snapshot | null} facts
 */

/** @type {Record<string, Syntax>} */
const artifactSyntax = { "llvm-ir": "llvm", ptx: "ptx", sass: "sass", amdgcn: "amdgcn" };

export class Model {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    this.manifest = trace.manifest;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Map<string, Entry>} */
    this.byAddress = new Map();
    if (this.manifest) this.#read(this.manifest);
  }

  /** @param {import("./types.js").Manifest} manifest */
  #read(manifest) {
    const llvm = this.trace.llvm_passes?.stages ?? [];
    for (const stage of [...manifest.stages, ...llvm]) {
      const base = { stage: stage.name, syntax: /** @type {Syntax} */ (llvm.includes(stage) ? "llvm" : "mlir") };
      if (stage.input) this.#add({ ...base, address: `${stage.name}:0`, name: "input", pass: null, text: stage.input });
      for (const pass of stage.passes) {
        const name = pass.step ?? pass.name;
        const syntax = pass.syntax ?? base.syntax;
        this.#add({ ...base, syntax, address: `${stage.name}:${pass.ordinal}`, name, pass, text: pass.text });
      }
    }
    for (const { name, digest, binary } of manifest.artifacts) {
      if (binary) continue;
      this.#add({ address: name, stage: name, name, pass: null, syntax: artifactSyntax[name] ?? "text", text: digest });
    }
    const { file, source, files } = manifest.kernel;
    const sources = [["source", file, source], ...[{ name: file, digest: source }, ...files].map(({ name, digest }) => [`source:${name}`, name, digest])];
    for (const [address, name, text] of sources) {
      this.byAddress.set(address, { address, stage: "source", name, pass: null, text, facts: null, syntax: "python" });
    }
  }

  /** @param {Omit<Entry, "facts">} entry */
  #add(entry) {
    const full = { ...entry, facts: this.trace.summary?.rows[entry.address] ?? null };
    this.entries.push(full);
    this.byAddress.set(entry.address, full);
  }

  /** @returns {[name: string, entries: Entry[]][]} the stages, then the artifacts together */
  groups() {
    /** @type {Map<string, Entry[]>} */
    const groups = new Map();
    for (const entry of this.entries) {
      const name = entry.address.includes(":") ? entry.stage : "artifacts";
      const list = groups.get(name);
      if (list) list.push(entry);
      else groups.set(name, [entry]);
    }
    return Array.from(groups);
  }

  /** @param {string | null} address @returns {Entry | null} */
  find(address) {
    return (address && this.byAddress.get(address)) || null;
  }

  /**
   * The address whose snapshot a pass received, or null; the same rule as `previous` in pipelines/trace.py.
   * @param {Entry} entry
   * @returns {string | null}
   */
  previous(entry) {
    const { pass, stage } = entry;
    if (!pass || pass.fragment) return null;
    for (let ordinal = pass.ordinal - 1; ordinal > 0; ordinal--) {
      const other = this.find(`${stage}:${ordinal}`);
      if (!other?.pass) break;
      if (other.pass.fragment) continue;
      if (other.pass.parent === pass.parent && other.text) return other.address;
      if (ordinal === pass.parent) return this.previous(other);
    }
    return this.byAddress.has(`${stage}:0`) ? `${stage}:0` : null;
  }

  /** @param {Entry} entry @returns {import("./types.js").Diagnostic[]} what was said about lines of the entry's own text */
  remarksOn({ address }) {
    const { diagnostics = [], kernel } = this.manifest ?? {};
    return diagnostics.filter((item) => item.address === address && (!kernel || fileOf(kernel, item) === undefined));
  }

  /**
   * The last address at or before `address` that changed something, whose text is the same up to names.
   * @param {string} address
   */
  origin(address) {
    let at = this.find(address);
    while (at && at.pass && !at.facts?.changed) {
      const before = this.previous(at);
      if (!before) break;
      at = this.find(before);
    }
    return at?.address ?? address;
  }

  /**
   * @param {string} address
   * @param {1 | -1} direction
   * @param {boolean} changed only passes that changed something, that failed, and artifacts; nested ones are skipped
   * @returns {Entry | null}
   */
  neighbour(address, direction, changed) {
    let at = this.entries.findIndex((entry) => entry.address === address);
    if (at < 0) return null;
    for (at += direction; at >= 0 && at < this.entries.length; at += direction) {
      const entry = this.entries[at];
      if (!changed || stands(entry)) return entry;
    }
    return null;
  }
}

/**
 * The file of the package that a diagnostic speaks of: null is the one that was run, undefined is none of them.
 * @param {import("./types.js").Manifest["kernel"]} kernel
 * @param {{file: string | null}} diagnostic
 * @returns {string | null | undefined}
 */
export function fileOf(kernel, { file }) {
  if (file === kernel.file) return null;
  return kernel.files.find(({ name }) => name === file)?.name;
}

/** @param {Entry} entry whether the entry is a step worth stopping at */
function stands({ pass, facts, address }) {
  if (!pass) return !address.endsWith(":0");
  return pass.failed || (pass.parent === null && Boolean(facts?.changed));
}
