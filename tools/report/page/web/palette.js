// The colours of what has a kind, in both themes. Hues after Okabe and Ito (Color Universal Design,
// 2008), which readers with any common form of colour blindness tell apart, moved in lightness so
// that the kinds differ in a grey print as well: as in tools/report/svg/theme.cpp.

/** @typedef {{ words: string, light: string, dark: string }} Paint */

/** Whether white text is easier to read on the colour than black. @param {string} colour */
export function wants_white(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.2;
}

/** @type {Record<string, Paint>} */
export const op_paints = {
  F: { words: 'forward', light: '#56a8de', dark: '#5cb0e6' },
  B: { words: 'backward', light: '#cd5a0a', dark: '#d9651a' },
  I: { words: 'input gradient', light: '#f0ba3c', dark: '#f0bc46' },
  W: { words: 'weight gradient', light: '#046a50', dark: '#117e62' },
  R: { words: 'recompute', light: '#d3e9f8', dark: '#bcdcf3' },
  U: { words: 'update', light: '#4b2e63', dark: '#9a7bb5' },
};

/** The same for every other stage of a device. */
/** @type {Record<string, Paint>} */
export const pale_paints = {
  F: { words: 'forward', light: '#a9d4f0', dark: '#a3cfee' },
  B: { words: 'backward', light: '#eea271', dark: '#f0ac80' },
  I: { words: 'input gradient', light: '#f8dd9a', dark: '#f7dfa3' },
  W: { words: 'weight gradient', light: '#62b297', dark: '#67b79d' },
  R: { words: 'recompute', light: '#e9f4fb', dark: '#d9ebf7' },
  U: { words: 'update', light: '#8a72a3', dark: '#b9a3cd' },
};

/** In rows of their own. A message has the colour of its sending and of its arrival. */
const activation = { words: 'activation message', light: '#2f7fb8', dark: '#7cc3f0' };
const gradient = { words: 'gradient message', light: '#d9792f', dark: '#ee935a' };
const stash = { words: 'stash message', light: '#6f8f2f', dark: '#b5cf6b' };
const weights = { words: 'weights message', light: '#4b2e63', dark: '#9a7bb5' };
/** @type {Record<string, Paint>} */
export const stream_paints = {
  SEND_F: activation,
  RECV_F: activation,
  SEND_B: gradient,
  RECV_B: gradient,
  SEND_STASH: stash,
  RECV_STASH: stash,
  SEND_WEIGHTS: weights,
  RECV_WEIGHTS: weights,
  REDUCE_GRAD: { words: 'gradient reduction', light: '#046a50', dark: '#2fa284' },
  OFFLOAD: { words: 'offload', light: '#8b5a86', dark: '#c79ac2' },
  PREFETCH: { words: 'prefetch', light: '#c79ac2', dark: '#8b5a86' },
};

/** Causes of idle time, shown while the ops are pale. */
/** @type {Record<string, Paint>} */
export const idle_paints = {
  fill: { words: 'filling', light: '#a3adbc', dark: '#757c88' },
  drain: { words: 'draining', light: '#565b66', dark: '#dfe4ea' },
  dependency: { words: 'dependencies', light: '#f5b92a', dark: '#e0c220' },
  imbalance: { words: 'unequal work', light: '#b84a0c', dark: '#d96a1c' },
  link: { words: 'messages', light: '#2a5be0', dark: '#4f8df5' },
  collectives: { words: 'gradient reductions', light: '#12a06a', dark: '#3cc08a' },
  optimizer: { words: 'updates', light: '#4b1a5c', dark: '#8a4fc0' },
  copies: { words: 'host copies', light: '#b566d0', dark: '#f0a1cb' },
  unused: { words: 'unused device', light: '#d6dade', dark: '#404854' },
};

/** Categories of memory, from below, by the keys of `peak_by_category`. */
/** @type {Record<string, Paint>} */
export const memory_paints = {
  reserve: { words: 'reserve', light: '#d9dce1', dark: '#343a44' },
  weights: { words: 'weights', light: '#5c6776', dark: '#7d8899' },
  versions: { words: 'older weights', light: '#b59ac6', dark: '#8a72a3' },
  gradients: { words: 'gradients of weights', light: '#2f8f74', dark: '#2fa284' },
  optimizer: { words: 'optimizer state', light: '#b3bac4', dark: '#4b5460' },
  stash_weight_grad: { words: 'stash for W', light: '#2f7fb8', dark: '#3f7fac' },
  stash_input_grad: { words: 'stash for I', light: '#8cc4ea', dark: '#8fcaf2' },
  stash_gradients: { words: 'gradients kept for W', light: '#f0ba3c', dark: '#f0bc46' },
  stash_boundary: { words: 'inputs to recompute from', light: '#d3e9f8', dark: '#bcdcf3' },
  buffers: { words: 'messages', light: '#d9702a', dark: '#e9803c' },
  communication: { words: 'communication buffers', light: '#a8477f', dark: '#cc79a7' },
  workspace: { words: 'workspace', light: '#f8dd9a', dark: '#b98f3a' },
};

/** Of series without a kind of their own, in order. */
export const series_paints = [op_paints.F, op_paints.B, op_paints.W, op_paints.I, op_paints.U];
