// Numbers as text.

/**
 * @param {number} value
 * @param {number} digits
 */
function significant(value, digits) {
  return String(Number(value.toPrecision(digits)));
}

/**
 * "12.34 ms"; `digits` significant ones.
 * @param {number} ps
 * @param {number} [digits]
 */
export function time_words(ps, digits = 4) {
  const size = Math.abs(ps);
  if (size === 0) return '0 s';
  if (size < 1e3) return `${significant(ps, digits)} ps`;
  if (size < 1e6) return `${significant(ps / 1e3, digits)} ns`;
  if (size < 1e9) return `${significant(ps / 1e6, digits)} µs`;
  if (size < 1e12) return `${significant(ps / 1e9, digits)} ms`;
  return `${significant(ps / 1e12, digits)} s`;
}

/**
 * "1.5 GB"
 * @param {number} bytes
 * @param {number} [digits]
 */
export function bytes_words(bytes, digits = 4) {
  const size = Math.abs(bytes);
  if (size < 1e3) return `${bytes} B`;
  if (size < 1e6) return `${significant(bytes / 1e3, digits)} kB`;
  if (size < 1e9) return `${significant(bytes / 1e6, digits)} MB`;
  if (size < 1e12) return `${significant(bytes / 1e9, digits)} GB`;
  return `${significant(bytes / 1e12, digits)} TB`;
}

/**
 * A round number of which about `wanted` make up the length; 0: there is none.
 * @param {number} length
 * @param {number} wanted
 */
export function round_step(length, wanted) {
  const rough = length / Math.max(1, wanted);
  if (!(rough > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
}

/**
 * Round numbers from `from` to `to`, about `wanted` of them.
 * @param {number} from
 * @param {number} to
 * @param {number} wanted
 * @returns {number[]}
 */
export function round_ticks(from, to, wanted) {
  const step = round_step(to - from, wanted);
  if (step === 0) return [from];
  const ticks = [];
  for (let n = Math.ceil(from / step); n * step <= to; ++n) ticks.push(n * step);
  return ticks;
}

/**
 * Long names keep both ends.
 * @param {string} text
 * @param {number} [most]
 */
export function shortened(text, most = 24) {
  const letters = Array.from(text);
  if (letters.length <= most) return text;
  const half = Math.floor((most - 1) / 2);
  return letters.slice(0, most - 1 - half).join('') + '…' + letters.slice(-half).join('');
}
