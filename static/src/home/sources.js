// Where the source on the page comes from: an example, an earlier trace, or what was last typed here.
import { api } from "../lib/api.js";

/** @typedef {import("./state.js").Example} Example */
/** @typedef {import("./state.js").Value} Value */

/**
 * @typedef {object} Start
 * @property {string} source
 * @property {string | null} [kernel]
 * @property {Record<string, string> | null} [args] given arguments and constexprs, null for the launch code's own
 * @property {Record<string, Value>} [options]
 * @property {string[] | null} [targets]
 */

const DRAFT = "draft";

/** @param {string} source */
export function saveDraft(source) {
  try {
    localStorage.setItem(DRAFT, source);
  } catch {
    // Storage may be off or full; the draft is only a convenience.
  }
}

/** @returns {string | null} */
export function readDraft() {
  try {
    return localStorage.getItem(DRAFT);
  } catch {
    return null;
  }
}

/**
 * Reads the source and settings of a trace, so that it can be changed and compiled again.
 * @param {string} id
 * @param {import("./state.js").Option[]} offered
 * @returns {Promise<Start>}
 */
export async function fromTrace(id, offered) {
  const trace = await api(`/traces/${encodeURIComponent(id)}`);
  const manifest = trace.manifest;
  if (!manifest) throw new Error(`Trace ${id} is not finished yet; open it again when it is.`);
  const response = await fetch(`/api/v1/traces/${encodeURIComponent(id)}/texts/${manifest.kernel.source}`);
  if (!response.ok) throw new Error(`The source of trace ${id} is not stored here any more.`);
  return {
    source: await response.text(),
    kernel: manifest.kernel.name,
    args: manifest.kernel.origin === "given" ? givenArguments(manifest.kernel.arguments) : null,
    options: changed(manifest.options, offered, manifest.target.backend),
    targets: [manifest.target.arch],
  };
}

/** @param {{name: string, type: string, divisibility: number | null, pointer_range: number | null, value: Value}[]} list */
function givenArguments(list) {
  return Object.fromEntries(
    list.map(({ name, type, divisibility, pointer_range, value }) => {
      if (type === "constexpr") return [name, value === true ? "True" : value === false ? "False" : String(value ?? "None")];
      if (!divisibility && !pointer_range) return [name, type];
      return [name, `${type}:${divisibility ?? 1}${pointer_range ? `:${pointer_range}` : ""}`];
    }),
  );
}

/**
 * @param {Record<string, any>} options
 * @param {import("./state.js").Option[]} offered
 * @param {string} backend
 */
function changed(options, offered, backend) {
  const defaults = new Map(offered.filter((option) => backend in option.defaults).map((option) => [option.name, option.defaults[backend]]));
  const entries = Object.entries(options).filter(([name, value]) => defaults.has(name) && JSON.stringify(defaults.get(name)) !== JSON.stringify(value));
  return Object.fromEntries(entries);
}
