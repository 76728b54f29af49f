// FSE and Huffman tables of RFC 8878, sections 4.1 and 4.2.
import { BackwardBits, FormatError, ForwardBits } from "./bits.js";

/** An FSE decoding table: for each state its symbol, the bits to read, and what they are added to. */
export class FseTable {
  /** @param {number} log @param {ArrayLike<number>} counts normalized; -1 is "less than one" */
  constructor(log, counts) {
    const size = 1 << log;
    this.log = log;
    this.symbol = new Uint8Array(size);
    this.bits = new Uint8Array(size);
    this.base = new Uint16Array(size);
    const next = Uint16Array.from(counts, (count) => (count === -1 ? 1 : count));
    this.#spread(size, counts);
    for (let state = 0; state < size; state++) {
      const at = next[this.symbol[state]]++;
      this.bits[state] = log - (31 - Math.clz32(at));
      this.base[state] = (at << this.bits[state]) - size;
    }
  }

  /** @param {number} size @param {ArrayLike<number>} counts */
  #spread(size, counts) {
    let high = size - 1;
    for (let symbol = 0; symbol < counts.length; symbol++) if (counts[symbol] === -1) this.symbol[high--] = symbol;
    const step = (size >> 1) + (size >> 3) + 3;
    let at = 0;
    for (let symbol = 0; symbol < counts.length; symbol++) {
      for (let left = counts[symbol]; left > 0; left--) {
        this.symbol[at] = symbol;
        do at = (at + step) & (size - 1);
        while (at > high);
      }
    }
    if (at !== 0) throw new FormatError("an FSE table does not add up");
  }

  /** @param {number} symbol @returns {FseTable} a table of one state */
  static constant(symbol) {
    const table = new FseTable(0, [1]);
    table.symbol[0] = symbol;
    return table;
  }

  /**
   * @param {Uint8Array} bytes
   * @param {number} at
   * @param {number} most the largest accuracy allowed
   * @param {number} symbols how many there may be
   * @returns {{table: FseTable, end: number}}
   */
  static read(bytes, at, most, symbols) {
    const bits = new ForwardBits(bytes, at);
    const log = bits.read(4) + 5;
    if (log > most) throw new FormatError("an FSE table is too large");
    /** @type {number[]} */
    const counts = [];
    for (let left = (1 << log) + 1; left > 1; ) {
      const count = readCount(bits, left);
      counts.push(count);
      left -= Math.abs(count);
      if (count === 0) readZeros(bits, counts);
      if (counts.length > symbols || left < 1) throw new FormatError("an FSE table has too many symbols");
    }
    return { table: new FseTable(log, counts), end: bits.end };
  }
}

/** @param {ForwardBits} bits @param {number} left what the counts still add up to, plus one @returns {number} */
function readCount(bits, left) {
  const width = 32 - Math.clz32(left);
  const spare = (1 << width) - 1 - left;
  const low = bits.peek(width - 1);
  if (low < spare) {
    bits.bit += width - 1;
    return low - 1;
  }
  const value = bits.read(width);
  return (value >= 1 << (width - 1) ? value - spare : value) - 1;
}

/** @param {ForwardBits} bits @param {number[]} counts */
function readZeros(bits, counts) {
  for (let more = 3; more === 3; ) {
    more = bits.read(2);
    for (let zero = 0; zero < more; zero++) counts.push(0);
    if (counts.length > 256) throw new FormatError("an FSE table has too many symbols");
  }
}

/** A Huffman table: for each pattern of `log` bits its symbol and how many of the bits are its code. */
export class HuffmanTable {
  /** @param {number[]} weights of all symbols but the last, which is deduced */
  constructor(weights) {
    const total = weights.reduce((sum, weight) => sum + (weight ? 1 << (weight - 1) : 0), 0);
    if (!total) throw new FormatError("a Huffman table is empty");
    this.log = 32 - Math.clz32(total);
    const rest = (1 << this.log) - total;
    if (this.log > 11 || rest & (rest - 1)) throw new FormatError("a Huffman table does not add up");
    this.symbol = new Uint8Array(1 << this.log);
    this.bits = new Uint8Array(1 << this.log);
    this.#fill([...weights, 32 - Math.clz32(rest)]);
  }

  /** @param {number[]} weights */
  #fill(weights) {
    let at = 0;
    for (let weight = 1; weight <= this.log; weight++) {
      const width = 1 << (weight - 1);
      for (let symbol = 0; symbol < weights.length; symbol++) {
        if (weights[symbol] !== weight) continue;
        this.symbol.fill(symbol, at, at + width);
        this.bits.fill(this.log + 1 - weight, at, at + width);
        at += width;
      }
    }
  }

  /** @param {Uint8Array} bytes @param {number} at @returns {{table: HuffmanTable, end: number}} */
  static read(bytes, at) {
    const head = bytes[at++];
    if (head < 128) return { table: new HuffmanTable(compressedWeights(bytes, at, at + head)), end: at + head };
    const count = head - 127;
    const weights = Array.from({ length: count }, (_, index) => (bytes[at + (index >> 1)] >> (index & 1 ? 0 : 4)) & 15);
    return { table: new HuffmanTable(weights), end: at + ((count + 1) >> 1) };
  }

  /**
   * Decodes one stream.
   * @param {Uint8Array} bytes
   * @param {number} from
   * @param {number} to
   * @param {Uint8Array} out filled to its end
   */
  decode(bytes, from, to, out) {
    const bits = new BackwardBits(bytes, from, to);
    for (let at = 0; at < out.length; at++) {
      const state = bits.peek(this.log);
      out[at] = this.symbol[state];
      bits.left -= this.bits[state];
    }
    if (bits.left !== 0) throw new FormatError("a Huffman stream has the wrong length");
  }
}

/** @param {Uint8Array} bytes @param {number} from @param {number} to @returns {number[]} */
function compressedWeights(bytes, from, to) {
  const { table, end } = FseTable.read(bytes, from, 6, 13);
  const bits = new BackwardBits(bytes, end, to);
  /** @type {number[]} */
  const weights = [];
  // Two states take turns; each symbol is known before its state's next bits are, and the last state's is the last.
  const states = [bits.read(table.log), bits.read(table.log)];
  for (let turn = 0; weights.length < 256; turn ^= 1) {
    const state = states[turn];
    weights.push(table.symbol[state]);
    if (table.bits[state] > bits.left) {
      weights.push(table.symbol[states[turn ^ 1]]);
      return weights;
    }
    states[turn] = table.base[state] + bits.read(table.bits[state]);
  }
  throw new FormatError("a Huffman table has too many weights");
}
