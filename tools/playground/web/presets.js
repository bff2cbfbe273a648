// Cases to begin with: a name, what to see in it, and what differs from the first state.
import { first_state } from './state.js';

/** @typedef {import('./state.js').State} State */

/** @type {{ name: string, about: string, state: Partial<State> }[]} */
export const presets = [
  { name: 'GPipe', state: { a: 'gpipe', b: '', bandwidth: 400 },
    about: 'All forwards run before the first backward, so the first device holds a stash of every micro-batch.' },
  { name: 'why 1F1B', state: { a: 'gpipe', b: '1f1b', m: 16, bandwidth: 400 },
    about: 'The same bubble as GPipe, but at most as many stashes as devices: look at the peak memory.' },
  { name: 'interleaved', state: { a: '1f1b', b: 'interleaved_1f1b', bandwidth: 400 },
    about: 'Two stages on each device halve the bubble, and send twice as many messages.' },
  { name: 'zero bubble', state: { a: '1f1b', b: 'zb_h1', bandwidth: 400 },
    about: 'The weight gradient W can wait: apart from the input gradient I, it fills most of the bubble.' },
  { name: 'DualPipe', state: { a: '1f1b', b: 'dualpipe', p: 8, m: 20, bandwidth: 400 },
    about: 'Micro-batches enter at both ends, and each device holds two stages.' },
  { name: 'stale weights', state: { a: '1f1b', b: 'pipedream', bandwidth: 400 },
    about: 'PipeDream never waits for an update: no bubble, but several versions of the weights.' },
  { name: 'Llama 3 70B on 64 H100', about: 'A language model, estimated: each layer is shared by the 8 devices of a machine ' +
    '(tp), and 8 machines make the pipeline. The range is that of published runs alike.',
    state: { trace: 'model:llama3-70b@h100', cluster: 'h100x8*8', p: 8, tp: 8, sp: 1, precision: 'bf16', m: 64,
      a: '1f1b', b: 'zb_v' } },
];

/** The preset that the state is, if any. @param {State} state */
export function preset_of(state) {
  return presets.find((preset) => {
    const whole = { ...first_state, ...preset.state };
    return Object.entries(whole).every(([key, value]) => state[/** @type {keyof State} */ (key)] === value);
  });
}
