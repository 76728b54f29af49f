// LLVM IR's textual form.
import { byFirst, digits, letters, lineParser, quoted } from "./scan.js";

/** @typedef {import("./scan.js").Rule} Rule */

const instructions =
  "ret br switch indirectbr invoke callbr resume unreachable fneg add fadd sub fsub mul fmul udiv sdiv fdiv urem " +
  "srem frem shl lshr ashr and or xor extractelement insertelement shufflevector extractvalue insertvalue alloca " +
  "load store fence cmpxchg atomicrmw getelementptr trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp " +
  "ptrtoint inttoptr bitcast addrspacecast icmp fcmp phi select freeze call va_arg landingpad define declare";

/** @type {Rule[]} */
const words = [
  [/^[A-Za-z$._][\w$.]*:(?=\s|$)/, "labelName"],
  [new RegExp(`^(?:${instructions.replaceAll(" ", "|")})(?![\\w.$])`), "keyword"],
  [/^(?:i\d+|half|bfloat|float|double|fp128|x86_fp80|ptr|void|label|metadata|token|opaque|type)(?![\w.$])/, "typeName"],
  [/^(?:x(?=\s)|true|false|null|none|undef|poison|zeroinitializer)(?![\w.$])/, "number"],
  [/^[A-Za-z_][\w.]*/, "modifier"],
];

/** @type {Map<string, Rule[]>} */
const rules = new Map([
  ...byFirst(letters, words),
  ...byFirst(digits, [
    [/^\d+:(?=\s|$)/, "labelName"],
    [/^0x[HKLMR]?[0-9a-fA-F]+/, "number"],
    [/^\d[\d.]*(?:e[+-]\d+)?/, "number"],
  ]),
  ...byFirst("-", [[/^-\d[\d.]*(?:e[+-]\d+)?/, "number"]]),
  ...byFirst("%", [[/^%(?:[\w.$-]+|"[^"]*")/, "variableName"]]),
  ...byFirst("@", [[/^@(?:[\w.$-]+|"[^"]*")/, "labelName"]]),
  ...byFirst("!", [[/^!\w[\w.]*/, "meta"], [/^!\d+/, "meta"]]),
  ...byFirst("#", [[/^#\d+/, "meta"]]),
  ...byFirst(";", [[/^;.*/, "comment"]]),
  ...byFirst("c", [[/^c"[^"]*"/, "string"], ...words]),
  ...byFirst('"', [quoted]),
]);
/** @type {Rule[]} */
const none = [];

export const llvm = lineParser("llvm", (first) => rules.get(first) ?? none);
