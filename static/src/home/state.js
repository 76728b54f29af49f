// The shapes that the home page's parts pass to each other.

/** @typedef {{value: string, kind: "type" | "value" | "function", origin: "guessed" | "default" | "config" | "heuristic", why: string, alternatives: string[]}} Guess */
/** @typedef {{name: string, annotation: string, constexpr: boolean, default: string | null, guess: Guess | null}} KernelArgument */
/** @typedef {{configs: {values: Record<string, string>, options: Record<string, string>}[], computed: boolean, key: string[]}} Tuning */
/**
 * @typedef {object} Kernel
 * @property {string} name
 * @property {number} line
 * @property {KernelArgument[]} arguments
 * @property {boolean} autotuned
 * @property {boolean} helper
 * @property {boolean} launched
 * @property {boolean} gluon
 * @property {boolean} declared whether its decorator, TorchInductor's, carries its signature
 * @property {string | null} within
 * @property {boolean} nested
 * @property {string[]} held
 * @property {Tuning | null} tuning
 * @property {string[]} heuristics
 */
/** @typedef {{message: string, line: number | null, column: number | null}} SourceError line and column count from 1 */
/** @typedef {{kernels: Kernel[], launches: boolean, error: SourceError | null, imported?: {name: string, module: string}[]}} Discovery what POST /kernels answers */
/** @typedef {{name: string, group: string, title: string, teaches: string, source: string, targets?: string[] | null}} Example */
/** @typedef {{name: string, type: string, defaults: Record<string, unknown>, values: Record<string, unknown[]>}} Option by back end */
/** @typedef {{backends: {name: string, vendor: string}[], options: Option[], default: string[]}} Offer what GET /targets answers */
/** @typedef {string | number | boolean | null} Value */
/** @typedef {{source: string} | {files: Record<string, string>, file: string}} Sources what POST /kernels takes */
/** @typedef {Value | {function: string}} Constant a constexpr's value */

/**
 * @typedef {object} CompileRequest the body of POST /compiles
 * @property {string} [source]
 * @property {Record<string, string>} [files] a package, by path
 * @property {string} [file] the one of them to start with
 * @property {string} [module] an installed library's
 * @property {string} [kernel]
 * @property {Record<string, string>} [args]
 * @property {Record<string, Constant>} [constexprs]
 * @property {string[]} targets
 * @property {Record<string, Value>} [options]
 */

/** A field that a person has to put right; `field` is as the API names it: `args.x_ptr`, `targets`. */
export class FieldError extends Error {
  /**
   * @param {string} field
   * @param {string} message
   */
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/**
 * Reads a constexpr's or an option's value as Python would: `128`, `True`, `0.5`, `None`; anything else is text.
 * @param {string} text
 * @returns {Value}
 */
export function readValue(text) {
  const word = text.trim();
  if (word === "True" || word === "true") return true;
  if (word === "False" || word === "false") return false;
  if (word === "None" || word === "null") return null;
  if (/^[+-]?(0x[0-9a-f]+|\d+)$/i.test(word)) return Number(word);
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word)) return Number(word);
  return word.replace(/^(["'])(.*)\1$/, "$2");
}
