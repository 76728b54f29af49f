// The languages that a trace's texts are written in, by the name the manifest's addresses imply.
import { amdgcn } from "./amdgcn.js";
import { llvm } from "./llvm.js";
import { mlir } from "./mlir.js";
import { ptx } from "./ptx.js";
import { sass } from "./sass.js";

/** @typedef {"mlir" | "llvm" | "ptx" | "sass" | "amdgcn" | "python" | "text"} Syntax */

/** @type {Record<string, import("./scan.js").LineParser>} */
export const parsers = { mlir, llvm, ptx, sass, amdgcn };

/** @type {Record<Syntax, string>} */
export const syntaxNames = { mlir: "MLIR", llvm: "LLVM IR", ptx: "PTX", sass: "SASS", amdgcn: "AMDGCN", python: "Python", text: "text" };
