// What an argument's field begins with, and what else it may be, as POST /kernels guesses it.

/** @typedef {import("./state.js").KernelArgument} KernelArgument */
/** @typedef {import("./state.js").Guess} Guess */
/** @typedef {"launch" | "declared" | "guess"} Filler */

/** Types to choose from beside those that a guess names. */
const TYPES = ["*fp16", "*bf16", "*fp32", "*fp64", "*fp8e4nv", "*fp8e5", "*i8", "*i32", "*i64", "*i1", "i32", "i64", "fp32", "None"];

/**
 * @param {string} text `*fp16:16`, or `*fp16:16:32` with a pointer's range in bits; tuples and descriptors keep their own
 * @returns {[string, string | null]} the type, and what divides it with what follows
 */
export function splitType(text) {
  const found = /^([^(:]+):\s*(\d+(?::\d+)?)$/.exec(text.trim());
  return found ? [found[1].trim(), found[2]] : [text.trim(), null];
}

/**
 * Text that a field for a guess begins with; a heuristic's value is only known when it runs.
 * @param {Guess | null} guess
 */
export function firstValue(guess) {
  return !guess || guess.origin === "heuristic" ? "" : guess.value;
}

/** @param {KernelArgument} argument @returns {string[]} what its field offers, without divisibility */
export function choices({ guess, constexpr }) {
  const offered = guess ? [guess.value, ...guess.alternatives] : [];
  if (constexpr) return [...new Set(offered)];
  return [...new Set([...offered.map((text) => splitType(text)[0]), ...(guess?.value.startsWith("(") ? [] : TYPES)])];
}

/** Whether a field for a type holds a value, which Triton folds into the kernel as it does a 1. @param {string} text */
export function isValue(text) {
  return /^([+-]?\.?\d[\w.+-]*|True|False)$/.test(text);
}

/**
 * Says in a word and a few more where a field's value comes from.
 * @param {KernelArgument} argument
 * @param {Filler} from what fills the fields that nobody has changed
 * @param {boolean} given whether somebody has changed this one
 * @returns {{tag: string, why: string}}
 */
export function provenance({ guess }, from, given) {
  if (given) return { tag: "", why: "given" };
  if (from !== "guess") return { tag: "", why: from === "launch" ? "as launched" : "as declared" };
  if (!guess) return { tag: "", why: "any number of values: only launch code can pass them" };
  return guess.origin === "guessed" ? { tag: "guessed", why: guess.why } : { tag: "", why: guess.why };
}
