// The question that the page shows, as a value and as the text behind # in the address.

/**
 * Times in µs, a device and micro-batch; sizes in MB; link in GB/s and µs; memory in GB, 0: no
 * limit. `trace`: empty for equal layers. `program`: runs in place of schedule `a`. Of a language model
 * (`trace` begins with "model:"): p pipeline ranks, tp and dp ranks, mbs sequences in a micro-batch, sp 1:
 * sequence parallel; an empty `cluster` is that of the model's device, an empty `precision` the model's.
 * @typedef {{ p: number, m: number, F: number, I: number, W: number, U: number, message: number,
 *   weights: number, stash: number, bandwidth: number, latency: number, memory: number,
 *   tp: number, dp: number, mbs: number, sp: number, zero: string, precision: string, cluster: string,
 *   trace: string, a: string, b: string, program: string }} State
 */

/** @type {State} */
export const first_state = {
  p: 4, m: 8, F: 1000, I: 1000, W: 1000, U: 0, message: 8, weights: 400, stash: 200,
  bandwidth: 50, latency: 5, memory: 0, tp: 1, dp: 1, mbs: 1, sp: 0,
  zero: '0', precision: '', cluster: '', trace: '', a: '1f1b', b: 'zb_h1', program: '',
};

/** What a text may be. */
const texts = ['trace', 'a', 'b', 'zero', 'precision', 'cluster'];

/** Whether the case is a language model on a cluster. @param {State} state */
export const is_language_model = (state) => state.trace.startsWith('model:');

/** The whole numbers and the others, with their limits. */
export const number_limits = {
  p: [1, 64, 1], m: [1, 1024, 1], F: [0, 1e7, 1], I: [0, 1e7, 1], W: [0, 1e7, 1], U: [0, 1e7, 1],
  message: [0, 1e6, 0.001], weights: [0, 1e6, 0.001], stash: [0, 1e6, 0.001],
  bandwidth: [0.001, 1e5, 0.001], latency: [0, 1e7, 0.001], memory: [0, 1e5, 0.001],
  tp: [1, 1024, 1], dp: [1, 65536, 1], mbs: [1, 1024, 1], sp: [0, 1, 1],
};

/**
 * @param {Blob} blob
 * @param {GenericTransformStream} stream
 */
async function through(blob, stream) {
  return new Uint8Array(await new Response(blob.stream().pipeThrough(stream)).arrayBuffer());
}

/** @param {string} text @returns {Promise<string>} letters that an address may have */
async function packed_text(text) {
  const bytes = await through(new Blob([text]), new CompressionStream('deflate-raw'));
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @param {string} text @returns {Promise<string>} */
async function unpacked_text(text) {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(
    await through(new Blob([bytes]), new DecompressionStream('deflate-raw')));
}

/** What differs from the first state. @param {State} state */
export async function address_of(state) {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value === first_state[/** @type {keyof State} */ (key)]) continue;
    words.set(key, key === 'program' ? await packed_text(String(value)) : String(value));
  }
  return words.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%40', '@')
    .replaceAll('%3D', '=');
}

/**
 * @param {string} hash with or without its #
 * @returns {Promise<State>} the first state where the text says nothing that can be
 */
export async function state_of(hash) {
  /** @type {any} */
  const state = { ...first_state };
  const words = new URLSearchParams(hash.replace(/^#/, ''));
  for (const [key, value] of words) {
    if (key in number_limits) {
      const number = Number(value);
      const [least, most, step] = number_limits[/** @type {keyof typeof number_limits} */ (key)];
      if (!Number.isFinite(number) || value.trim() === '') continue;
      const whole = step === 1 ? Math.round(number) : number;
      state[key] = Math.min(most, Math.max(least, whole));
    } else if (key === 'program') {
      state.program = await unpacked_text(value).catch(() => '');
    } else if (texts.includes(key)) {
      state[key] = value;
    }
  }
  return state;
}
