// The colours of what has a kind, in both themes. Hues after Okabe and Ito (Color Universal Design,
// 2008), which readers with any common form of colour blindness tell apart, moved in lightness so
// that the kinds differ in a grey print as well: as in tools/report/svg/theme.cpp.

/**
 * `ink`: black or white text on it.
 * @typedef {{ words: string, light: string, dark: string, ink: 'k' | 'w' }} Paint
 */

/** @type {Record<string, Paint>} */
export const op_paints = {
  F: { words: 'forward', light: '#56a8de', dark: '#5cb0e6', ink: 'k' },
  B: { words: 'backward', light: '#cd5a0a', dark: '#d9651a', ink: 'w' },
  I: { words: 'input gradient', light: '#f0ba3c', dark: '#f0bc46', ink: 'k' },
  W: { words: 'weight gradient', light: '#046a50', dark: '#117e62', ink: 'w' },
  R: { words: 'recompute', light: '#d3e9f8', dark: '#bcdcf3', ink: 'k' },
  U: { words: 'update', light: '#4b2e63', dark: '#9a7bb5', ink: 'w' },
};

/** The same for every other stage of a device. */
/** @type {Record<string, Paint>} */
export const pale_paints = {
  F: { words: 'forward', light: '#a9d4f0', dark: '#a3cfee', ink: 'k' },
  B: { words: 'backward', light: '#eea271', dark: '#f0ac80', ink: 'k' },
  I: { words: 'input gradient', light: '#f8dd9a', dark: '#f7dfa3', ink: 'k' },
  W: { words: 'weight gradient', light: '#62b297', dark: '#67b79d', ink: 'k' },
  R: { words: 'recompute', light: '#e9f4fb', dark: '#d9ebf7', ink: 'k' },
  U: { words: 'update', light: '#8a72a3', dark: '#b9a3cd', ink: 'w' },
};

/** In rows of their own. A message has the colour of its sending and of its arrival. */
const activation = { words: 'activation message', light: '#2f7fb8', dark: '#7cc3f0' };
const gradient = { words: 'gradient message', light: '#d9792f', dark: '#ee935a' };
const stash = { words: 'stash message', light: '#6f8f2f', dark: '#b5cf6b' };
const weights = { words: 'weights message', light: '#4b2e63', dark: '#9a7bb5' };
/** @type {Record<string, Paint>} */
export const stream_paints = {
  SEND_F: { ...activation, ink: 'w' },
  RECV_F: { ...activation, ink: 'w' },
  SEND_B: { ...gradient, ink: 'w' },
  RECV_B: { ...gradient, ink: 'w' },
  SEND_STASH: { ...stash, ink: 'w' },
  RECV_STASH: { ...stash, ink: 'w' },
  SEND_WEIGHTS: { ...weights, ink: 'w' },
  RECV_WEIGHTS: { ...weights, ink: 'w' },
  REDUCE_GRAD: { words: 'gradient reduction', light: '#046a50', dark: '#2fa284', ink: 'w' },
  OFFLOAD: { words: 'offload', light: '#8b5a86', dark: '#c79ac2', ink: 'w' },
  PREFETCH: { words: 'prefetch', light: '#c79ac2', dark: '#8b5a86', ink: 'k' },
};

/** Causes of idle time, shown while the ops are pale. */
/** @type {Record<string, Paint>} */
export const idle_paints = {
  fill: { words: 'filling', light: '#9aa3b0', dark: '#707a88', ink: 'k' },
  drain: { words: 'draining', light: '#5c6776', dark: '#a9b2bf', ink: 'w' },
  dependency: { words: 'dependencies', light: '#e6c02e', dark: '#e6c02e', ink: 'k' },
  imbalance: { words: 'unequal stages', light: '#cd5a0a', dark: '#e8762a', ink: 'w' },
  link: { words: 'messages', light: '#2f7fb8', dark: '#5cb0e6', ink: 'w' },
  collectives: { words: 'gradient reductions', light: '#046a50', dark: '#2fa284', ink: 'w' },
  optimizer: { words: 'updates', light: '#4b2e63', dark: '#9a7bb5', ink: 'w' },
  copies: { words: 'host copies', light: '#c26aa0', dark: '#d58fba', ink: 'k' },
  unused: { words: 'unused device', light: '#cbd0d7', dark: '#404854', ink: 'k' },
};

/** Categories of memory, from below, by the keys of `peak_by_category`. */
/** @type {Record<string, Paint>} */
export const memory_paints = {
  reserve: { words: 'reserve', light: '#d9dce1', dark: '#343a44', ink: 'k' },
  weights: { words: 'weights', light: '#5c6776', dark: '#7d8899', ink: 'w' },
  versions: { words: 'older weights', light: '#b59ac6', dark: '#8a72a3', ink: 'k' },
  gradients: { words: 'gradients of weights', light: '#2f8f74', dark: '#2fa284', ink: 'w' },
  optimizer: { words: 'optimizer state', light: '#b3bac4', dark: '#4b5460', ink: 'k' },
  stash_weight_grad: { words: 'stash for W', light: '#2f7fb8', dark: '#3f7fac', ink: 'w' },
  stash_input_grad: { words: 'stash for I', light: '#8cc4ea', dark: '#8fcaf2', ink: 'k' },
  stash_gradients: { words: 'gradients kept for W', light: '#f0ba3c', dark: '#f0bc46', ink: 'k' },
  stash_boundary: { words: 'inputs to recompute from', light: '#d3e9f8', dark: '#bcdcf3', ink: 'k' },
  buffers: { words: 'messages', light: '#d9702a', dark: '#e9803c', ink: 'w' },
  communication: { words: 'communication buffers', light: '#a8477f', dark: '#cc79a7', ink: 'w' },
  workspace: { words: 'workspace', light: '#f8dd9a', dark: '#b98f3a', ink: 'k' },
};

/** Of series without a kind of their own, in order. */
export const series_paints = [op_paints.F, op_paints.B, op_paints.W, op_paints.I, op_paints.U];
