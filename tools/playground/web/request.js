// From the state to the request that the engine is asked: tools/answers/request.schema.json.

import { is_language_model } from './state.js';

/** @typedef {import('./state.js').State} State */

/** @param {number} a @param {number} b @returns {number} */
function common_divisor(a, b) {
  return b === 0 ? a : common_divisor(b, a % b);
}

/**
 * Layers on each device: divided evenly by every number of stages that the schedules make of them.
 * @param {State} state
 */
function layers_each(state) {
  let each = 2;
  for (const spec of [state.a, state.b]) {
    const chunks = Number(/[:,]chunks=(\d+)/.exec(spec)?.[1] ?? 1);
    if (chunks > 0 && chunks <= 64) each = each / common_divisor(each, chunks) * chunks;
  }
  return each;
}

/** @param {State} state */
function trace_of(state) {
  if (state.trace) return state.trace;
  const each = layers_each(state);
  /** @param {number} us */
  const time = (us) => `${Math.round(us * 1e6 / each)}ps`;
  /** @param {number} mb @param {number} parts */
  const size = (mb, parts) => `${Math.round(mb * 1e6 / parts)}B`;
  return `uniform:layers=${state.p * each},forward=${time(state.F)},input_grad=${time(state.I)},` +
    `weight_grad=${time(state.W)},update=${time(state.U)},output=${size(state.message, 1)},` +
    `weights=${size(state.weights, each)},stash=${size(state.stash, each)}`;
}

/** @param {number} number @param {string} unit */
const with_unit = (number, unit) => `${number.toFixed(9).replace(/\.?0+$/, '')}${unit}`;

/** What says the model, the cluster and the degrees. @param {State} state @returns {Record<string, any>} */
function language_model_of(state) {
  /** @type {Record<string, any>} */
  const request = { trace: state.trace };
  if (state.cluster) request.cluster = state.cluster;
  request.pp = state.p;
  request.tp = state.tp;
  if (state.dp > 1) request.dp = state.dp;
  if (state.zero !== '0') request.zero = state.zero;
  if (state.precision) request.precision = state.precision;
  if (state.sp) request.sequence_parallel = true;
  request.microbatch_size = state.mbs;
  return request;
}

/**
 * @param {State} state
 * @param {'a' | 'b'} side
 * @returns {Record<string, any>}
 */
export function request_of(state, side) {
  /** @type {Record<string, any>} */
  const request = is_language_model(state) ? language_model_of(state) : {
    trace: trace_of(state),
    devices: state.p,
    link: `${with_unit(state.bandwidth, 'GB/s')},${with_unit(state.latency, 'us')}`,
  };
  if (state.memory > 0) request.memory = with_unit(state.memory, 'GB');
  if (side === 'a' && state.program) {
    request.program = state.program;
    delete request.devices;
    delete request.pp;
  } else {
    request.microbatches = state.m;
    request.schedule = state[side];
  }
  return request;
}

/** @param {string} text as one word of a shell */
const quoted = (text) => (/^[\w@:=.,/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/**
 * The command that answers the same.
 * @param {State} state
 * @param {'a' | 'b'} side
 */
export function command_of(state, side) {
  const request = request_of(state, side);
  const words = ['stageline simulate', quoted(request.trace)];
  if (request.program) words.push('--program FILE.slp');
  else words.push('--schedule', quoted(request.schedule));
  for (const key of ['cluster', 'devices', 'pp', 'tp', 'dp', 'zero', 'precision', 'microbatch_size', 'microbatches',
    'link', 'memory']) {
    if (key in request) words.push(`--${key.replace('_', '-')} ${quoted(String(request[key]))}`);
  }
  if (request.sequence_parallel) words.push('--sequence-parallel');
  return words.join(' ');
}
