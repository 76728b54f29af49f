// Where the source on the page comes from: an example, an earlier trace, or what was last typed here.
import { api } from "../lib/api.js";
import { FIRST, single } from "./files.js";

/** @typedef {import("./state.js").Example} Example */
/** @typedef {import("./state.js").Value} Value */

/** @typedef {import("./files.js").Package} Package */

/**
 * @typedef {object} Start
 * @property {Package} package
 * @property {string | null} [kernel]
 * @property {Record<string, string>} [args] given arguments and constexprs
 * @property {"launch" | "guessed" | "given"} [origin] where the other arguments come from; the launch code by itself
 * @property {Record<string, Value>} [options]
 * @property {string[] | null} [targets]
 */

// A lone file is kept as its text, more of them as JSON.
const DRAFT = "draft";
const PACKAGE = "draft-package";

/** @param {Package} made */
export function saveDraft(made) {
  const lone = Object.keys(made.files).length === 1 && made.entry === FIRST && made.module === null;
  try {
    if (lone) localStorage.removeItem(PACKAGE);
    localStorage.setItem(lone ? DRAFT : PACKAGE, lone ? made.files[FIRST] : JSON.stringify(made));
  } catch {
    // Storage may be off or full; the draft is only a convenience.
  }
}

/** @returns {Package | null} */
export function readDraft() {
  try {
    const made = localStorage.getItem(PACKAGE);
    if (made !== null) return asPackage(JSON.parse(made));
    const source = localStorage.getItem(DRAFT);
    return source === null ? null : single(source);
  } catch {
    return null;
  }
}

/** Takes a package that was kept in the browser, if it is one. @param {any} made @returns {Package | null} */
export function asPackage(made) {
  const texts = Object.values(made?.files ?? {});
  const sound = texts.length > 0 && texts.every((text) => typeof text === "string") && typeof made.files[made.entry] === "string";
  return sound ? { files: made.files, entry: made.entry, module: typeof made.module === "string" ? made.module : null } : null;
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
  const { kernel } = manifest;
  const list = [{ name: kernel.file, digest: kernel.source }, ...kernel.files];
  const texts = await Promise.all(list.map(async ({ name, digest }) => [name, await textOf(id, digest)]));
  return {
    package: { files: Object.fromEntries(texts), entry: kernel.file, module: kernel.module },
    kernel: kernel.name,
    ...given(kernel),
    options: changed(manifest.options, offered, manifest.target.backend),
    targets: [manifest.target.arch],
  };
}

/** @param {string} id @param {string} digest */
async function textOf(id, digest) {
  const response = await fetch(`/api/v1/traces/${encodeURIComponent(id)}/texts/${digest}`);
  if (!response.ok) throw new Error(`The source of trace ${id} is not stored here any more.`);
  return response.text();
}

/** @typedef {{name: string, type: string, divisibility: number | null, pointer_range?: number | null, value: any, members: Argument[], guessed: boolean}} Argument */

/**
 * Reads back what was given; what was guessed is guessed again.
 * @param {{origin: string, arguments: Argument[]}} kernel
 * @returns {Pick<Start, "args" | "origin">}
 */
function given({ origin, arguments: list }) {
  if (origin !== "given" && origin !== "guessed") return { origin: "launch" };
  return { origin, args: Object.fromEntries(list.filter(({ guessed }) => !guessed).map((argument) => [argument.name, written(argument)])) };
}

/** @param {Argument} argument @returns {string} as the API and the command line write it */
function written({ type, divisibility, pointer_range: range, value, members }) {
  if (members.length) return `(${members.map(written).join(", ")}${members.length === 1 ? "," : ""})`;
  if (type === "constexpr") return constant(value);
  if (!divisibility && !range) return type;
  return `${type}:${divisibility ?? 1}${range ? `:${range}` : ""}`;
}

/** @param {any} value @returns {string} */
function constant(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  return typeof value === "object" && "function" in value ? value.function : String(value);
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
