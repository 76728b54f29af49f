// What the four stream parsers share. Every pattern is anchored: an unanchored one is quadratic on a long line.

/** @typedef {import("@codemirror/language").StringStream} StringStream */
/** @typedef {import("@codemirror/language").StreamParser<null>} LineParser a parser that carries nothing from line to line */
/** @typedef {[RegExp, string | null]} Rule a pattern that starts with ^, and the name of what it matches */

/**
 * A parser that looks at a token's first character to choose the few patterns worth trying.
 * @param {string} name
 * @param {(first: string) => Rule[]} rulesFor
 * @returns {LineParser}
 */
export function lineParser(name, rulesFor) {
  return {
    name,
    startState: () => null,
    copyState: () => null,
    token(stream) {
      if (stream.eatSpace()) return null;
      for (const [pattern, style] of rulesFor(stream.peek() ?? "")) {
        if (stream.match(pattern)) return style;
      }
      stream.next();
      return null;
    },
  };
}

/** @param {string} text @param {Rule[]} rules @returns {Map<string, Rule[]>} each character of the text with these rules */
export function byFirst(text, rules) {
  return new Map(Array.from(text, (character) => [character, rules]));
}

export const digits = "0123456789";
export const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
/** @type {Rule} */
export const quoted = [/^"(?:[^"\\]|\\.)*"?/, "string"];
