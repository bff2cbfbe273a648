// The tools above the rows: what is shown, and what of it in full.
import { chooser, tool } from './diagram_controls.js';
import { kind_words } from './diagram_details.js';
import { element } from './dom.js';
import { shortened } from './words.js';

export const longest_list = 512; // entries of a choice

/**
 * @typedef {{ key(name: string): boolean, set_focus(change: Partial<import('./diagram_paint.js').Focus>): void,
 *   set_device(device: number): void, set_streams(streams: boolean): void,
 *   save(format: 'svg' | 'png'): void }} ToolActions
 */

/** @param {HTMLSelectElement} select @param {[string, string][]} options value and text */
export function set_options(select, options) {
  const now = JSON.stringify(options);
  if (select.dataset.options === now) return;
  const { value } = select;
  select.dataset.options = now;
  select.replaceChildren(...options.map(([one, text]) =>
    element('option', { value: one, dir: 'auto' }, text)));
  select.value = options.some(([one]) => one === value) ? value : options[0]?.[0] ?? '';
}

export class Toolbar {
  /** @param {ToolActions} actions @param {boolean} streams */
  constructor(actions, streams) {
    this.path = tool('critical path', 'c: the chain of ops that sets the pace', () => actions.key('c'));
    this.idle = tool('idle time', 'i: what idle time is due to', () => actions.key('i'));
    this.stage = chooser('stage', [], (value) => actions.set_focus({ stage: Number(value) }));
    this.kind = chooser('kind', [], (value) => actions.set_focus({ kind: value }));
    this.device = chooser('device', [], (value) => actions.set_device(Number(value)));
    this.follow = /** @type {HTMLInputElement} */ (element('input', { type: 'number', min: 0, size: 6,
      placeholder: 'all' }));
    this.follow.addEventListener('input', () => actions.set_focus(
      { microbatch: this.follow.value === '' ? -1 : Number(this.follow.value) }));
    this.streams = /** @type {HTMLInputElement} */ (element('input', { type: 'checkbox' }));
    this.streams.checked = streams;
    this.streams.addEventListener('change', () => actions.set_streams(this.streams.checked));
    this.host = element('div', { class: 'controls tools', role: 'group', 'aria-label': 'diagram' },
      tool('whole', '0: the whole run', () => actions.key('0')),
      tool('−', '−: zoom out', () => actions.key('-')), tool('+', '+: zoom in', () => actions.key('+')),
      this.path, this.idle,
      element('label', { title: 'f: follow the micro-batch of the op that is selected' },
        'micro-batch ', this.follow),
      this.stage.label, this.kind.label, this.device.label,
      element('label', {}, this.streams, ' messages and copies'),
      tool('SVG', 'save the view as SVG', () => actions.save('svg')),
      tool('PNG', 'save the view as PNG', () => actions.save('png')));
  }

  /** @param {import('./diagram_run.js').Run[]} runs @param {Set<string>} kinds */
  set_runs(runs, kinds) {
    const stages = Math.min(longest_list, Math.max(...runs.map((run) => run.stages)));
    set_options(this.stage.select, [['-1', 'all'], ...Array.from({ length: stages },
      (_, i) => /** @type {[string, string]} */ ([String(i), String(i)]))]);
    set_options(this.kind.select, [['', 'all'],
      ...[...kinds].map((one) => /** @type {[string, string]} */ ([one, kind_words(one)]))]);
    set_options(this.device.select, [['-1', 'all'], ...runs[0].devices.slice(0, longest_list).map(
      (name, i) => /** @type {[string, string]} */ ([String(i), shortened(name, 30)]))]);
  }

  /** @param {import('./diagram_paint.js').Focus} focus */
  show(focus) {
    this.path.setAttribute('aria-pressed', String(focus.path));
    this.idle.setAttribute('aria-pressed', String(focus.idle));
    this.stage.select.value = String(focus.stage);
    this.kind.select.value = focus.kind;
    const microbatch = focus.microbatch < 0 ? '' : String(focus.microbatch);
    if (this.follow.value !== microbatch) this.follow.value = microbatch;
  }
}
