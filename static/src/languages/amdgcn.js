// AMD's assembly as LLVM writes it.
import { byFirst, digits, letters, lineParser, quoted } from "./scan.js";

/** @typedef {import("./scan.js").Rule} Rule */

/** @type {Rule[]} */
const words = [
  [/^[vsa](?:\d+|(?=\[))(?!\w)/, "variableName"],
  [/^(?:(?:vcc|exec|flat_scratch|xnack_mask)(?:_lo|_hi)?|ttmp\d+|m0|scc|null)(?!\w)/, "variableName"],
  [/^(?:v|s|ds|buffer|tbuffer|global|flat|scratch|image|lds|exp)_\w+(?=\s|$)/, "keyword"],
  [/^[a-z]\w*(?=:[\w[-])/, "modifier"],
  [/^[A-Za-z_][\w.$@]*:/, "labelName"],
  [/^[A-Za-z_][\w.$]*/, "propertyName"],
];

/** @type {Map<string, Rule[]>} */
const rules = new Map([
  ...byFirst(letters, words),
  ...byFirst(digits, [
    [/^0x[0-9a-fA-F]+/, "number"],
    [/^\d[\w.]*/, "number"],
  ]),
  ...byFirst("-", [[/^-(?:0x[0-9a-fA-F]+|\d[\w.]*)/, "number"]]),
  ...byFirst(".", [
    [/^\.L[\w.$]*:?/, "labelName"],
    [/^\.[A-Za-z_][\w.]*/, "modifier"],
  ]),
  ...byFirst(";", [[/^;.*/, "comment"]]),
  ...byFirst('"', [quoted]),
]);
/** @type {Rule[]} */
const none = [];

export const amdgcn = lineParser("amdgcn", (first) => rules.get(first) ?? none);
