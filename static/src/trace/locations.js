// Where a text speaks of source locations only, which the page hides until asked: the rules of
// pipelines/analysis/locations.py, which decides what a diff calls location-only.

/** @typedef {import("./types.js").Syntax} Syntax */
/** @typedef {[from: number, to: number]} Span */

/** @type {Partial<Record<Syntax, {first: string, line: RegExp}>>} */
const whole = {
  mlir: { first: "#", line: /^#(?:loc\d*\s*=|di_)/ },
  llvm: { first: "! ", line: /^(?:!\d+ = (?:distinct )?!DI|!llvm\.dbg\.cu |\s*#dbg_)/ },
  sass: { first: "\t /", line: /^\s*\/\/## File / },
};

// A debug section ends with its last line, or before the next section.
const assembly = {
  ptx: { line: /^\s*(?:\.(?:loc|file)\s|\$L__(?:tmp|func_begin|func_end))/, last: /^\s*}/, next: null },
  amdgcn: { line: /^\s*\.(?:(?:loc|file)\s|cfi_|L(?:tmp|func_begin|func_end))/, last: null, next: /^\s*\.(?:section|text)\b/ },
};

/**
 * Lines that hold nothing but locations, as ranges from 0, half-open; debug sections belong to it.
 * @param {string[]} lines
 * @param {Syntax} syntax
 * @returns {Span[]}
 */
export function locationRanges(lines, syntax) {
  if (syntax === "ptx" || syntax === "amdgcn") return assemblyRanges(lines, assembly[syntax]);
  const rule = whole[syntax];
  if (!rule) return [];
  /** @type {Span[]} */
  const ranges = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (!line || !rule.first.includes(line[0]) || !rule.line.test(line)) continue;
    include(ranges, at);
  }
  return ranges;
}

/** @param {string[]} lines @param {{line: RegExp, last: RegExp | null, next: RegExp | null}} rules @returns {Span[]} */
function assemblyRanges(lines, { line: alone, last, next }) {
  /** @type {Span[]} */
  const ranges = [];
  let inside = false;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (next?.test(line)) inside = false;
    if (/^\s*\.section\s+\.debug_/.test(line)) inside = true;
    if (inside || alone.test(line)) include(ranges, at);
    if (last?.test(line)) inside = false;
  }
  return ranges;
}

/** @param {Span[]} ranges @param {number} at */
function include(ranges, at) {
  const last = ranges.at(-1);
  if (last && last[1] === at) last[1] = at + 1;
  else ranges.push([at, at + 1]);
}

/**
 * Locations inside one line, as columns.
 * @param {string} line
 * @param {Syntax} syntax
 * @returns {Span[]}
 */
export function inlineLocations(line, syntax) {
  if (syntax === "mlir") return mlirLocations(line);
  if (syntax !== "llvm") return [];
  const spans = /** @type {Span[]} */ ([]);
  for (const match of line.matchAll(/,? !dbg !\d+/g)) spans.push([match.index, match.index + match[0].length]);
  return spans;
}

/**
 * What a text shows while locations are hidden.
 * @param {string} text
 * @param {Syntax} syntax
 * @returns {string}
 */
export function withoutLocations(text, syntax) {
  const lines = text.split("\n");
  const hidden = new Set(locationRanges(lines, syntax).flatMap(([from, to]) => Array.from({ length: to - from }, (_, at) => from + at)));
  return lines
    .filter((_, at) => !hidden.has(at))
    .map((line) => inlineLocations(line, syntax).reduceRight((left, [from, to]) => left.slice(0, from) + left.slice(to), line))
    .join("\n");
}

/** @param {string} line @returns {Span[]} */
function mlirLocations(line) {
  /** @type {Span[]} */
  const spans = [];
  let at = line.indexOf(" loc(");
  while (at >= 0) {
    const end = closing(line, at + 5);
    spans.push([at, end]);
    at = line.indexOf(" loc(", end);
  }
  return spans;
}

/**
 * @param {string} line
 * @param {number} at just after an open parenthesis
 * @returns {number} just after the one that closes it; names in quotes may hold parentheses
 */
function closing(line, at) {
  for (let depth = 1; at < line.length; at++) {
    const character = line[at];
    if (character === '"') {
      for (at++; at < line.length && line[at] !== '"'; at++) if (line[at] === "\\") at++;
    } else if (character === "(") depth++;
    else if (character === ")" && --depth === 0) return at + 1;
  }
  return line.length;
}
