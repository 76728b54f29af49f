// First guesses for a kernel's arguments, from the names and annotations that people use; each can be changed.

/** @typedef {import("./state.js").KernelArgument} KernelArgument */

export const TYPES = [
  "*fp16", "*bf16", "*fp32", "*fp64", "*fp8e4nv", "*fp8e5", "*i8", "*i16", "*i32", "*i64", "*i1",
  "i32", "i64", "i8", "i16", "i1", "u32", "u64", "fp32", "fp64", "fp16", "bf16", "None",
];

/**
 * @param {KernelArgument} argument
 * @returns {string} `*fp16:16`, `i32`, `fp32`
 */
export function guessType({ name, annotation, default: value }) {
  const lower = name.toLowerCase();
  const written = annotation.replace(/^["']|["']$/g, "");
  if (written && TYPES.includes(written)) return written;
  if (/ptrs?$|(^|_)(ptr|pointer)_/.test(lower)) return "*fp16:16";
  if (/^(eps|epsilon|scale|sm_scale|alpha|beta|lr|p|dropout)$|_scale$|_eps$/.test(lower)) return "fp32";
  if (value !== null && /^-?\d*\.\d/.test(value)) return "fp32";
  if (/stride/.test(lower)) return "i32:16";
  if (/^([abcoqvxyz]|out|output|inp|input|weight|bias|mean|rstd)$/.test(lower)) return "*fp16:16";
  return "i32";
}

/**
 * @param {KernelArgument} argument a constexpr
 * @returns {string}
 */
export function guessValue({ name, annotation, default: value }) {
  if (value !== null) return value;
  const lower = name.toLowerCase();
  if (annotation.includes("bool") || /^(has|is|use|causal|enable|even)(_|$)/.test(lower)) return "True";
  if (/group/.test(lower)) return "8";
  if (/(_k|_kdim)$/.test(lower)) return "32";
  if (/(_m|_n|_q|head|dim)/.test(lower)) return "64";
  return "1024";
}
