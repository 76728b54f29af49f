// The languages that a trace's texts are written in, by the name the manifest's addresses imply.
import { llvm } from "./llvm.js";
import { mlir } from "./mlir.js";
import { ptx } from "./ptx.js";
import { sass } from "./sass.js";

/** @typedef {"mlir" | "llvm" | "ptx" | "sass" | "python" | "text"} Syntax */

/** @type {Record<string, import("./scan.js").LineParser>} */
export const parsers = { mlir, llvm, ptx, sass };

/** @type {Record<Syntax, string>} */
export const syntaxNames = { mlir: "MLIR", llvm: "LLVM IR", ptx: "PTX", sass: "SASS", python: "Python", text: "text" };
