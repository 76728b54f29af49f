// MLIR's textual form: builtin syntax, and operations of any dialect by their dotted names.
import { byFirst, digits, letters, lineParser, quoted } from "./scan.js";

/** @typedef {import("./scan.js").Rule} Rule */

/** @type {Rule[]} */
const words = [
  [/^loc(?=\()/, "comment"],
  [/^(?:tensor|memref|vector|tuple|complex|index|none|ptr|[su]?i\d+|bf16|tf32|f\d+(?:E\d+M\d+\w*)?)(?![\w.$])/, "typeName"],
  [/^[A-Za-z_]\w*(?:[.$][\w$-]+)+(?=\s*=(?!=)|\s*,|\s*})/, "propertyName"],
  [/^[a-z_]\w*(?:\.[\w$-]+)+/, "keyword"],
  [/^(?:module|func|return|attributes|to|step|iter_args|else|then|do|into|dense|array|true|false|unit)(?![\w.$])/, "modifier"],
  [/^[A-Za-z_][\w$]*/, "propertyName"],
];

/** @type {Map<string, Rule[]>} */
const rules = new Map([
  ...byFirst(letters, words),
  ...byFirst(digits, [
    [/^0x[0-9a-fA-F]+/, "number"],
    [/^(?:(?:\d+|\?)x)+(?=[!<\w?])/, "typeName"],
    [/^\d[\w.]*(?:[eE][+-]\d+)?/, "number"],
  ]),
  ...byFirst("-", [
    [/^->/, null],
    [/^-\d[\d.]*(?:[eE][+-]?\d+)?/, "number"],
  ]),
  ...byFirst("?", [[/^(?:(?:\d+|\?)x)+/, "typeName"]]),
  ...byFirst("%", [[/^%[\w.$-]+(?:[:#]\d+)?/, "variableName"]]),
  ...byFirst("#", [[/^#[\w.$-]+/, "meta"]]),
  ...byFirst("!", [[/^![\w.$-]+/, "typeName"]]),
  ...byFirst("@", [[/^@(?:[\w.$-]+|"(?:[^"\\]|\\.)*")/, "labelName"]]),
  ...byFirst("^", [[/^\^[\w.$-]+/, "labelName"]]),
  ...byFirst("/", [[/^\/\/.*/, "comment"]]),
  ...byFirst('"', [[/^"[a-z_]\w*(?:\.[\w$]+)+"(?=\s*\()/, "keyword"], quoted]),
]);
/** @type {Rule[]} */
const none = [];

export const mlir = lineParser("mlir", (first) => rules.get(first) ?? none);
