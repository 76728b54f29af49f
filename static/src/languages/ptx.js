// PTX assembly.
import { byFirst, digits, letters, lineParser, quoted } from "./scan.js";

/** @typedef {import("./scan.js").Rule} Rule */

const type = /^\.(?:pred|[bsuf](?:8|16|32|64|128)|f16x2|bf16(?:x2)?|tf32|e4m3(?:x2)?|e5m2(?:x2)?)(?![\w.])/;

/** @type {Rule[]} */
const words = [
  [/^[A-Za-z_$][\w$]*:(?!:)/, "labelName"],
  [/^[a-z][a-z0-9_]*(?:(?:\.|::)[\w]+)*(?=\s|;)/, "keyword"],
  [/^[A-Za-z_$][\w$]*/, "propertyName"],
];

/** @type {Map<string, Rule[]>} */
const rules = new Map([
  ...byFirst(letters, words),
  ...byFirst("$", [
    [/^\$[\w$]+:?/, "labelName"],
  ]),
  ...byFirst(digits, [
    [/^0[xXfFdD][0-9a-fA-F]+U?/, "number"],
    [/^\d[\w.]*/, "number"],
  ]),
  ...byFirst("-", [[/^-\d[\w.]*/, "number"]]),
  ...byFirst("%", [[/^%[\w.$]+/, "variableName"]]),
  ...byFirst("@", [[/^@!?%?\w+/, "meta"]]),
  ...byFirst(".", [
    [type, "typeName"],
    [/^\.[a-z_]\w*(?:::\w+)?/, "modifier"],
  ]),
  ...byFirst("/", [
    [/^\/\/.*/, "comment"],
    [/^\/\*.*?\*\//, "comment"],
  ]),
  ...byFirst('"', [quoted]),
]);
/** @type {Rule[]} */
const none = [];

export const ptx = lineParser("ptx", (first) => rules.get(first) ?? none);
