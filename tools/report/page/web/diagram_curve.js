// Memory over time, decoded.
import { begins_of, read_varints, summed } from './data.js';

/** A stack of bytes by category over time, at one device. */
export class Curve {
  /**
   * @param {Float64Array} at
   * @param {Float64Array} bytes by point and category
   * @param {number} categories
   */
  constructor(at, bytes, categories) {
    this.at = at;
    this.bytes = bytes;
    this.categories = categories;
    this.total = new Float64Array(at.length);
    this.most = 0;
    for (let i = 0; i < at.length; ++i) {
      for (let c = 0; c < categories; ++c) this.total[i] += bytes[i * categories + c];
      if (this.total[i] > this.most) this.most = this.total[i];
    }
  }

  /** The point that holds at that time; -1: before the first. @param {number} time */
  point_at(time) {
    let low = 0;
    let high = this.at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

/**
 * @param {(name: string) => import('./data.js').Numbers | undefined} blob
 * @param {number} categories
 * @returns {Curve[]} by device
 */
export function read_curves(blob, categories) {
  const sizes = blob('curve_sizes') ?? [];
  const begin = begins_of(sizes);
  const count = begin[begin.length - 1];
  const at = read_varints(blob('curve_at'), count, true);
  const bytes = read_varints(blob('curve_bytes'), count * categories, true);
  return Array.from(sizes, (_, device) => {
    const of_device = bytes.subarray(begin[device] * categories, begin[device + 1] * categories);
    for (let i = categories; i < of_device.length; ++i) of_device[i] += of_device[i - categories];
    return new Curve(summed(at.subarray(begin[device], begin[device + 1])), of_device, categories);
  });
}
