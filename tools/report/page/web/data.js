// Reads the data that the page carries: base64 of gzip of a head in JSON and typed arrays.

/**
 * @typedef {Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array} Numbers
 * @typedef {{ kind: string, title: string, data: any, blobs: Map<string, Numbers> }} Section
 * @typedef {{ title: string, subtitle: string, footnotes: string[], version: string,
 *   sections: Section[] }} Report
 */

const blob_types = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  i32: Int32Array,
  f64: Float64Array,
};

/**
 * @param {string} text
 * @returns {Uint8Array}
 */
export function from_base64(text) {
  if ('fromBase64' in Uint8Array) return /** @type {any} */ (Uint8Array).fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * A typed array over a buffer.
 * @param {string} type as BlobType in page.hpp
 * @param {ArrayBufferLike} buffer
 * @param {number} [offset] in bytes
 * @param {number} [bytes]
 * @returns {Numbers}
 */
export function typed_numbers(type, buffer, offset = 0, bytes = buffer.byteLength) {
  const array = blob_types[/** @type {keyof typeof blob_types} */ (type)];
  return new array(/** @type {ArrayBuffer} */ (buffer), offset, bytes / array.BYTES_PER_ELEMENT);
}

/**
 * @param {string} base64
 * @returns {Promise<Report>}
 */
export async function read_report(base64) {
  const packed = new Blob([/** @type {any} */ (from_base64(base64))]).stream();
  const buffer = await new Response(
    packed.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
  const head_bytes = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, head_bytes)));
  const begin = Math.ceil((4 + head_bytes) / 8) * 8;
  for (const section of head.sections) {
    const blobs = new Map();
    for (const blob of section.blobs) {
      blobs.set(blob.name, typed_numbers(blob.type, buffer, begin + blob.offset, blob.bytes));
    }
    section.blobs = blobs;
  }
  return head;
}

/**
 * `count` numbers of seven bits a byte (varint.hpp).
 * @param {Numbers | undefined} bytes
 * @param {number} count
 * @param {boolean} [signed]
 * @returns {Float64Array}
 */
export function read_varints(bytes, count, signed = false) {
  const numbers = new Float64Array(count);
  if (!bytes) return numbers;
  let at = 0;
  for (let i = 0; i < count; ++i) {
    // The lower 28 bits as an integer, the rest as a float: exact up to 2^53.
    let byte = bytes[at++];
    let low = byte & 127;
    for (let shift = 7; byte > 127 && shift < 28; shift += 7) {
      byte = bytes[at++];
      low |= (byte & 127) << shift;
    }
    let high = 0;
    for (let scale = 2 ** 28; byte > 127; scale *= 128) {
      byte = bytes[at++];
      high += (byte & 127) * scale;
    }
    if (!signed) numbers[i] = low + high;
    else numbers[i] = (low & 1) === 0 ? (low + high) / 2 : -(low + 1 + high) / 2;
  }
  return numbers;
}

/** @param {Float64Array} deltas */
export function summed(deltas) {
  for (let i = 1; i < deltas.length; ++i) deltas[i] += deltas[i - 1];
  return deltas;
}

/**
 * Begins of consecutive parts with these sizes, and the end of the last.
 * @param {ArrayLike<number>} sizes
 */
export function begins_of(sizes) {
  const begins = new Uint32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; ++i) begins[i + 1] = begins[i] + sizes[i];
  return begins;
}
