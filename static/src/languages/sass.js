// NVIDIA's machine code as nvdisasm prints it, with or without raw encodings.
import { byFirst, digits, letters, lineParser, quoted } from "./scan.js";

/** @typedef {import("./scan.js").Rule} Rule */

/** @type {Rule[]} */
const words = [
  [/^U?R(?:\d+|Z)(?![\w])(?:\.(?:reuse|64|H0_H0|H1_H1|F32|X4|X8|X16))*/, "variableName"],
  [/^(?:UP|P)(?:\d|T)(?!\w)/, "meta"],
  [/^(?:SB|B|SR_?\w*|SRZ)\d*(?:\.[XYZ])?(?![\w])(?=\s*[,;\]])/, "typeName"],
  [/^c(?=\[)|^cx(?=\[)|^desc(?=\[)/, "typeName"],
  [/^[A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*(?=\s|;)/, "keyword"],
  [/^[A-Za-z_$][\w$.]*:/, "labelName"],
  [/^[A-Za-z_$][\w$.]*/, "propertyName"],
];

/** @type {Map<string, Rule[]>} */
const rules = new Map([
  ...byFirst(letters, words),
  ...byFirst(digits, [
    [/^0x[0-9a-fA-F]+/, "number"],
    [/^\d[\w.]*/, "number"],
  ]),
  ...byFirst("-", [[/^-?(?:0x[0-9a-fA-F]+|\d[\w.]*)/, "number"]]),
  ...byFirst("@", [[/^@!?U?P(?:\d|T)/, "meta"]]),
  ...byFirst("`", [[/^`\([^)]*\)/, "labelName"]]),
  ...byFirst(".", [
    [/^\.[\w$.]+:/, "labelName"],
    [/^\.[\w$.]+/, "modifier"],
  ]),
  ...byFirst("/", [
    [/^\/\/.*/, "comment"],
    [/^\/\*.*?\*\//, "comment"],
  ]),
  ...byFirst('"', [quoted]),
]);
/** @type {Rule[]} */
const none = [];

export const sass = lineParser("sass", (first) => rules.get(first) ?? none);
