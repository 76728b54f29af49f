// Decodes a zstd frame (RFC 8878), with the text before it as prefix: what browsers' own decompressors cannot do.
import { BackwardBits, FormatError } from "./bits.js";
import { FseTable, HuffmanTable } from "./entropy.js";

const magic = 0xfd2fb528;
const largestBlock = 1 << 17;

/** @param {number[]} bits of the codes after those that stand for themselves @param {number} plain how many those are @param {number} first */
function codes(bits, plain, first) {
  const base = Array.from({ length: plain }, (_, code) => first + code);
  for (let at = 0, value = first + plain; at < bits.length; value += 2 ** bits[at++]) base.push(value);
  return { base, bits: [...Array(plain).fill(0), ...bits] };
}

const literalCodes = codes([1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 16, 0);
const matchCodes = codes([1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 32, 3);

/** What the three kinds of codes are bounded by, and the tables that the format itself defines. */
const kinds = {
  literal: { most: 9, symbols: 36, table: new FseTable(6, [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1]) },
  offset: { most: 8, symbols: 32, table: new FseTable(5, [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1]) },
  match: { most: 9, symbols: 53, table: new FseTable(6, [1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1]) },
};

/**
 * @param {Uint8Array} frame
 * @param {Uint8Array} prefix what the frame was compressed after; empty for none
 * @returns {Uint8Array}
 */
export function decompress(frame, prefix) {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (frame.length < 6 || view.getUint32(0, true) !== magic) throw new FormatError("this is no zstd frame");
  const { size, at } = readHeader(view);
  const out = new Uint8Array(prefix.length + size);
  out.set(prefix);
  const decoder = new Decoder(frame, out, prefix.length);
  decoder.blocks(at);
  return out.subarray(prefix.length);
}

/** @param {DataView} view @returns {{size: number, at: number}} the decompressed size, and where the blocks begin */
function readHeader(view) {
  const flags = view.getUint8(4);
  const single = (flags >> 5) & 1;
  let at = 5 + (single ? 0 : 1) + [0, 1, 2, 4][flags & 3];
  const kind = flags >> 6;
  if (kind === 0 && !single) throw new FormatError("a frame does not say its size");
  const width = 1 << kind;
  const size = [() => view.getUint8(at), () => view.getUint16(at, true) + 256, () => view.getUint32(at, true), () => Number(view.getBigUint64(at, true))][kind]();
  return { size, at: at + width };
}

class Decoder {
  /** @type {HuffmanTable | null} */
  #huffman = null;
  /** @type {Partial<Record<keyof typeof kinds, FseTable>>} */
  #tables = {};
  #offsets = [1, 4, 8];

  /** @param {Uint8Array} bytes @param {Uint8Array} out @param {number} at where to go on writing */
  constructor(bytes, out, at) {
    this.bytes = bytes;
    this.out = out;
    this.at = at;
  }

  /** @param {number} at */
  blocks(at) {
    for (let last = 0; !last; ) {
      if (at + 3 > this.bytes.length) throw new FormatError("a frame is cut short");
      const head = this.bytes[at] | (this.bytes[at + 1] << 8) | (this.bytes[at + 2] << 16);
      last = head & 1;
      at = this.#block((head >> 1) & 3, head >> 3, at + 3);
    }
    if (this.at !== this.out.length) throw new FormatError("a frame has another size than it says");
  }

  /** @param {number} type @param {number} size @param {number} at @returns {number} where the next block begins */
  #block(type, size, at) {
    const end = type === 1 ? at + 1 : at + size;
    if (end > this.bytes.length || type === 3 || size > largestBlock) throw new FormatError("a block is damaged");
    if (type === 0) this.#put(this.bytes.subarray(at, end));
    else if (type === 1) this.#put(new Uint8Array(size).fill(this.bytes[at]));
    else {
      const { literals, at: next } = this.#literals(at, end);
      this.#sequences(next, end, literals);
    }
    return end;
  }

  /** @param {Uint8Array} bytes */
  #put(bytes) {
    if (this.at + bytes.length > this.out.length) throw new FormatError("a frame is larger than it says");
    this.out.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** @param {number} at @param {number} end @returns {{literals: Uint8Array, at: number}} */
  #literals(at, end) {
    const { bytes } = this;
    const [type, format] = [bytes[at] & 3, (bytes[at] >> 2) & 3];
    if (type < 2) {
      const head = format === 1 ? 2 : format === 3 ? 3 : 1;
      const whole = bytes[at] | (head > 1 ? bytes[at + 1] << 8 : 0) | (head > 2 ? bytes[at + 2] << 16 : 0);
      const size = whole >> (head === 1 ? 3 : 4);
      if (size > largestBlock) throw new FormatError("literals are too long");
      at += head;
      if (type === 1) return { literals: new Uint8Array(size).fill(bytes[at]), at: at + 1 };
      return { literals: bytes.subarray(at, at + size), at: at + size };
    }
    const width = [10, 10, 14, 18][format];
    const head = [3, 3, 4, 5][format];
    const bits = bytes.subarray(at, at + head).reduce((sum, byte, index) => sum + byte * 2 ** (8 * index), 0);
    const size = Math.floor(bits / 16) % 2 ** width;
    const stop = at + head + Math.floor(bits / 2 ** (4 + width));
    if (stop > end || size > largestBlock) throw new FormatError("literals are too long");
    at += head;
    if (type === 2) ({ table: this.#huffman, end: at } = HuffmanTable.read(bytes, at));
    if (!this.#huffman) throw new FormatError("a Huffman table is missing");
    return { literals: this.#huffmanStreams(this.#huffman, at, stop, size, format !== 0), at: stop };
  }

  /** @param {HuffmanTable} table @param {number} at @param {number} end @param {number} size @param {boolean} four */
  #huffmanStreams(table, at, end, size, four) {
    const out = new Uint8Array(size);
    if (!four) {
      table.decode(this.bytes, at, end, out);
      return out;
    }
    const each = (size + 3) >> 2;
    const jump = /** @param {number} index */ (index) => this.bytes[at + 2 * index] | (this.bytes[at + 2 * index + 1] << 8);
    let from = at + 6;
    for (let stream = 0; stream < 4; stream++) {
      const to = stream < 3 ? from + jump(stream) : end;
      if (to > end) throw new FormatError("a Huffman stream is damaged");
      table.decode(this.bytes, from, to, out.subarray(stream * each, Math.min(size, (stream + 1) * each)));
      from = to;
    }
    return out;
  }

  /** @param {number} at @param {number} end @param {Uint8Array} literals */
  #sequences(at, end, literals) {
    const { bytes } = this;
    let count = bytes[at++];
    if (count >= 255) {
      count = bytes[at] + (bytes[at + 1] << 8) + 0x7f00;
      at += 2;
    } else if (count >= 128) count = ((count - 128) << 8) + bytes[at++];
    if (!count) return this.#put(literals);
    const modes = bytes[at++];
    const literal = (at = this.#table("literal", modes >> 6, at), this.#known("literal"));
    const offset = (at = this.#table("offset", (modes >> 4) & 3, at), this.#known("offset"));
    const match = (at = this.#table("match", (modes >> 2) & 3, at), this.#known("match"));
    this.#execute(new BackwardBits(bytes, at, end), count, literals, { literal, offset, match });
  }

  /** @param {keyof typeof kinds} kind */
  #known(kind) {
    const table = this.#tables[kind];
    if (!table) throw new FormatError("a table is repeated that was never there");
    return table;
  }

  /** Takes the table of one kind of code. @param {keyof typeof kinds} kind @param {number} mode @param {number} at @returns {number} */
  #table(kind, mode, at) {
    const { most, symbols, table } = kinds[kind];
    if (mode === 0) this.#tables[kind] = table;
    else if (mode === 1) {
      if (this.bytes[at] >= symbols) throw new FormatError("a code is too large");
      this.#tables[kind] = FseTable.constant(this.bytes[at++]);
    } else if (mode === 2) {
      const { table: read, end } = FseTable.read(this.bytes, at, most, symbols);
      this.#tables[kind] = read;
      return end;
    }
    return at;
  }

  /**
   * @param {BackwardBits} bits
   * @param {number} count
   * @param {Uint8Array} literals
   * @param {Record<keyof typeof kinds, FseTable>} tables
   */
  #execute(bits, count, literals, { literal, offset, match }) {
    let [literalState, offsetState, matchState] = [bits.read(literal.log), bits.read(offset.log), bits.read(match.log)];
    let used = 0;
    for (let left = count; left > 0; left--) {
      const offsetCode = offset.symbol[offsetState];
      const matchCode = match.symbol[matchState];
      const literalCode = literal.symbol[literalState];
      const distance = 2 ** offsetCode + bits.read(offsetCode);
      const length = matchCodes.base[matchCode] + bits.read(matchCodes.bits[matchCode]);
      const before = literalCodes.base[literalCode] + bits.read(literalCodes.bits[literalCode]);
      if (used + before > literals.length) throw new FormatError("a sequence wants more literals than there are");
      this.#put(literals.subarray(used, used + before));
      used += before;
      this.#copy(this.#offset(distance, before), length);
      if (left === 1) break;
      literalState = literal.base[literalState] + bits.read(literal.bits[literalState]);
      matchState = match.base[matchState] + bits.read(match.bits[matchState]);
      offsetState = offset.base[offsetState] + bits.read(offset.bits[offsetState]);
    }
    if (bits.left !== 0) throw new FormatError("sequences have the wrong length");
    this.#put(literals.subarray(used));
  }

  /** @param {number} value as coded: 1 to 3 name an earlier offset @param {number} literals @returns {number} */
  #offset(value, literals) {
    const last = this.#offsets;
    if (value > 3) {
      this.#offsets = [value - 3, last[0], last[1]];
      return value - 3;
    }
    const index = literals ? value - 1 : value;
    if (index === 0) return last[0];
    const found = index === 3 ? last[0] - 1 : last[index];
    this.#offsets = index === 1 ? [found, last[0], last[2]] : [found, last[0], last[1]];
    return found;
  }

  /** @param {number} distance @param {number} length */
  #copy(distance, length) {
    const { out, at } = this;
    const from = at - distance;
    if (from < 0 || distance < 1 || at + length > out.length) throw new FormatError("a sequence reaches too far");
    if (distance >= length) out.copyWithin(at, from, from + length);
    else for (let index = 0; index < length; index++) out[at + index] = out[from + index];
    this.at = at + length;
  }
}
