// Reads the texts of .loupe files (docs/trace-format.md) as they are asked for; their rows are numbered through.
import { FormatError } from "./zstd/bits.js";
import { decompress } from "./zstd/frame.js";

/** @typedef {{frame: Uint8Array, base: number}} Row base is the row whose text is its prefix, or -1 */

const magic = "LOUPE\x01\r\n";
const rowBytes = 52;
const keptBytes = 64_000_000;
const none = new Uint8Array();

export class Archive {
  /** @type {Row[]} */
  #rows = [];
  /** @type {Map<string, number>} */
  #numbers = new Map();
  /** @type {Map<number, Uint8Array>} the texts used last, the newest at the end */
  #kept = new Map();
  #keptBytes = 0;

  /** @param {Uint8Array} data */
  add(data) {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    if (String.fromCharCode(...data.subarray(0, 8)) !== magic) throw new FormatError("this is not a .loupe file");
    const first = this.#rows.length;
    const head = view.getUint32(8, true);
    for (let count = view.getUint32(12, true), at = 16 + head; count > 0; count--, at += rowBytes) {
      const name = hex(data.subarray(at, at + 32));
      const offset = Number(view.getBigUint64(at + 32, true));
      const base = view.getInt32(at + 48, true);
      if (!this.#numbers.has(name)) this.#numbers.set(name, this.#rows.length);
      this.#rows.push({ frame: data.subarray(offset, offset + view.getUint32(at + 40, true)), base: base < 0 ? -1 : first + base });
    }
  }

  /** @param {string} name a digest @returns {number} its place in the file */
  number(name) {
    const number = this.#numbers.get(name);
    if (number === undefined) throw new FormatError(`the trace holds no text ${name}`);
    return number;
  }

  /** @param {string} name a digest @returns {Uint8Array} */
  blob(name) {
    const number = this.number(name);
    let first = number;
    while (!this.#kept.has(first) && this.#rows[first].base >= 0) first = this.#rows[first].base;
    let blob = this.#kept.get(first) ?? this.#decode(first, none);
    for (let next = first + 1; next <= number; next++) blob = this.#decode(next, blob);
    this.#keep(number, blob);
    return blob;
  }

  /** @param {number} number @param {Uint8Array} before */
  #decode(number, before) {
    const { frame, base } = this.#rows[number];
    return decompress(frame, base >= 0 ? before : none);
  }

  /** @param {number} number @param {Uint8Array} blob */
  #keep(number, blob) {
    this.#keptBytes += this.#kept.delete(number) ? 0 : blob.length;
    this.#kept.set(number, blob);
    for (const [old, { length }] of this.#kept) {
      if (this.#keptBytes <= keptBytes || old === number) break;
      this.#kept.delete(old);
      this.#keptBytes -= length;
    }
  }
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
