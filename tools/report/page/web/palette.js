// The colours of what has a kind, in both themes. Hues after Okabe and Ito (Color Universal Design,
// 2008), which readers with any common form of colour blindness tell apart, moved in lightness so
// that the kinds differ in a grey print as well: as in tools/report/svg/theme.cpp.

/**
 * `ink`: black or white text on it. A `pattern` is drawn over idle time and copies.
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
