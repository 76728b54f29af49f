// The two ways in which zstd packs bits: forwards for table descriptions, backwards for what was entropy-coded.

export class FormatError extends Error {}

export class ForwardBits {
  /** @param {Uint8Array} bytes @param {number} at where the first bit stands */
  constructor(bytes, at) {
    this.bytes = bytes;
    this.bit = at * 8;
  }

  /** @param {number} count at most 24 */
  peek(count) {
    return (load(this.bytes, this.bit >> 3) >>> (this.bit & 7)) & ((1 << count) - 1);
  }

  /** @param {number} count at most 24 */
  read(count) {
    const value = this.peek(count);
    this.bit += count;
    return value;
  }

  /** @returns {number} the first byte after what was read */
  get end() {
    return (this.bit + 7) >> 3;
  }
}

/** Reads from the last byte to the first; the highest set bit of the last byte only says where the bits begin. */
export class BackwardBits {
  /** @param {Uint8Array} bytes @param {number} from @param {number} to */
  constructor(bytes, from, to) {
    const last = bytes[to - 1];
    if (to <= from || !last) throw new FormatError("a bit stream has no end mark");
    this.bytes = bytes;
    this.from = from;
    /** Bits that are left. */
    this.left = (to - from) * 8 - (Math.clz32(last) - 24) - 1;
  }

  /** @param {number} count at most 24; bits past the end are 0 */
  peek(count) {
    const low = this.left - count;
    const mask = (1 << count) - 1;
    if (low >= 0) return (load(this.bytes, this.from + (low >> 3)) >>> (low & 7)) & mask;
    const kept = this.left > 0 ? load(this.bytes, this.from) & ((1 << this.left) - 1) : 0;
    return (kept << (count - Math.max(0, this.left))) & mask;
  }

  /** @param {number} count at most 31 @returns {number} */
  read(count) {
    if (count > 24) {
      const high = this.read(count - 16);
      return high * 65_536 + this.read(16);
    }
    const value = this.peek(count);
    this.left -= count;
    return value;
  }
}

/** @param {Uint8Array} bytes @param {number} at @returns {number} four bytes, little-endian, 0 past the end */
function load(bytes, at) {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}
