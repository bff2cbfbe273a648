// The fields: numbers with sliders, schedules with their knobs, the trace.
import { element } from '../../report/page/web/dom.js';
import { preset_of, presets } from './presets.js';
import { first_state, number_limits } from './state.js';

/** @typedef {import('./state.js').State} State */
/**
 * @typedef {{ name: string, values: string, default: string, summary: string }} Knob
 * @typedef {{ name: string, summary: string, source: string, synchronous: boolean,
 *   knobs: Knob[] }} Schedule
 * @typedef {{ version: string, schedules: Schedule[],
 *   traces: { name: string, layers: number, described: string }[] }} Names
 */

/** Words, unit, and the range of the slider: a slider is quadratic, so that small numbers have room. */
/** @type {Record<string, [string, string, string, number]>} */
const numbers = {
  p: ['devices', '', 'p: devices of the pipeline', 16],
  m: ['micro-batches', '', 'm: micro-batches of a step', 64],
  F: ['F', 'µs', 'forward of a micro-batch on a device', 4000],
  I: ['I', 'µs', 'input gradient of a micro-batch on a device', 4000],
  W: ['W', 'µs', 'weight gradient of a micro-batch on a device', 4000],
  U: ['update', 'µs', 'optimizer step on a device', 4000],
  bandwidth: ['bandwidth', 'GB/s', 'of the link of each device', 400],
  latency: ['latency', 'µs', 'of a message', 400],
  message: ['message', 'MB', 'activation that a stage sends for a micro-batch', 100],
  memory: ['memory', 'GB', 'of each device; 0: no limit', 80],
  weights: ['weights', 'MB', 'on a device', 4000],
  stash: ['stash', 'MB', 'that a micro-batch leaves on a device until its backward', 1000],
};
/** @type {[string, string[]][]} */
const groups = [
  ['pipeline', ['p', 'm']],
  ['times on a device', ['F', 'I', 'W', 'U']],
  ['links', ['bandwidth', 'latency', 'message']],
  ['memory', ['memory', 'weights', 'stash']],
];
/** Fields that a measured or priced trace decides. */
const of_layers = ['F', 'I', 'W', 'U', 'message', 'weights', 'stash'];
const steps_of_slider = 200;

/** "zb_v:chunks=2,limit=3" @param {string} spec */
function knobs_of(spec) {
  const [name, rest = ''] = spec.split(/:(.*)/s);
  const knobs = new Map(rest.split(',').filter((item) => item.includes('=')).map(
    (item) => /** @type {[string, string]} */ (item.split(/=(.*)/s).slice(0, 2))));
  return { name, knobs };
}

/** @param {string} name @param {Map<string, string>} knobs */
function spec_of(name, knobs) {
  const items = Array.from(knobs, ([knob, value]) => `${knob}=${value}`);
  return items.length > 0 ? `${name}:${items.join(',')}` : name;
}

export class Controls {
  /**
   * @param {HTMLElement} host
   * @param {Names} names
   * @param {(change: Partial<State>) => void} changed
   */
  constructor(host, names, changed) {
    this.names = names;
    this.changed = changed;
    /** @type {Map<string, { number: HTMLInputElement, slider: HTMLInputElement }>} */
    this.fields = new Map();
    for (const [title, keys] of groups) {
      host.append(element('fieldset', {}, element('legend', {}, title),
        ...keys.map((key) => this.number_field(key))));
    }
    this.trace = this.choice('layers', [['', 'equal layers'],
      ...names.traces.map((one) => /** @type {[string, string]} */ (
        [one.name, `${one.name} (${one.layers} layers)`]))],
    (value) => changed({ trace: value }));
    const groups_of_layers = element('fieldset', {}, element('legend', {}, 'model'),
      this.trace.label);
    host.prepend(groups_of_layers);
    this.a = this.schedule_field('schedule A', 'a');
    this.b = this.schedule_field('schedule B', 'b');
    this.schedules = element('div', { class: 'schedules' }, this.a.host, this.b.host);
    this.about_preset = element('p', { class: 'hint' });
    this.buttons = presets.map(({ name, state }) => {
      const button = element('button', { type: 'button' }, name);
      button.addEventListener('click', () => changed({ ...first_state, ...state }));
      return button;
    });
    this.presets = element('div', { class: 'presets', role: 'group', 'aria-label': 'presets' }, ...this.buttons,
      this.about_preset);
  }

  /** @param {string} key */
  number_field(key) {
    const [words, unit, help, reach] = numbers[key];
    const [least, most, step] = number_limits[/** @type {keyof typeof number_limits} */ (key)];
    const number = /** @type {HTMLInputElement} */ (element('input',
      { type: 'number', id: `field-${key}`, min: least, max: most, step: step === 1 ? 1 : 'any' }));
    const slider = /** @type {HTMLInputElement} */ (element('input', { type: 'range', min: 0,
      max: steps_of_slider, id: `slider-${key}`, 'aria-label': `${words} ${unit}` }));
    slider.addEventListener('input', () => {
      const share = Number(slider.value) / steps_of_slider;
      const value = least + (reach - least) * share * share;
      const rounded = step === 1 && reach <= 100 ? Math.round(value) : Number(value.toPrecision(2));
      this.changed({ [key]: Math.max(least, rounded) });
    });
    number.addEventListener('input', () => {
      if (number.value === '' || !number.checkValidity()) return;
      this.changed({ [key]: Number(number.value) });
    });
    this.fields.set(key, { number, slider });
    return element('label', { class: 'field', title: help },
      element('span', {}, words), slider, number, element('span', { class: 'unit' }, unit));
  }

  /**
   * @param {string} words
   * @param {[string, string][]} options
   * @param {(value: string) => void} act
   */
  choice(words, options, act) {
    const select = /** @type {HTMLSelectElement} */ (element('select', {},
      ...options.map(([value, text]) => element('option', { value, dir: 'auto' }, text))));
    select.addEventListener('change', () => act(select.value));
    return { select, label: element('label', { class: 'field choice' },
      element('span', {}, words), select) };
  }

  /** @param {string} words @param {'a' | 'b'} side */
  schedule_field(words, side) {
    /** @type {[string, string][]} */
    const options = this.names.schedules.map((one) => [one.name, one.name]);
    if (side === 'b') options.unshift(['', 'none']);
    const choice = this.choice(words, options, (value) => this.changed(
      side === 'a' ? { a: value, program: '' } : { b: value }));
    choice.select.id = `schedule-${side}`;
    const knobs = element('div', { class: 'knobs' });
    const about = element('p', { class: 'hint' });
    return { choice, knobs, about,
      host: element('div', { class: 'schedule' }, choice.label, knobs, about) };
  }

  /** @param {State} state */
  show(state) {
    const preset = preset_of(state);
    for (const button of this.buttons) button.setAttribute('aria-pressed', String(button.textContent === preset?.name));
    this.about_preset.textContent = preset?.about ?? 'Begin with a case, and change it.';
    for (const [key, { number, slider }] of this.fields) {
      const value = Number(state[/** @type {keyof State} */ (key)]);
      if (document.activeElement !== number) number.value = String(value);
      const reach = numbers[key][3];
      const [least] = number_limits[/** @type {keyof typeof number_limits} */ (key)];
      const share = Math.sqrt(Math.max(0, (value - least) / (reach - least)));
      slider.value = String(Math.round(share * steps_of_slider));
      const off = (state.trace !== '' && of_layers.includes(key)) ||
        (state.program !== '' && state.b === '' && (key === 'p' || key === 'm'));
      number.disabled = off;
      slider.disabled = off;
    }
    if (![...this.trace.select.options].some((one) => one.value === state.trace)) {
      this.trace.select.append(element('option', { value: state.trace, dir: 'auto' },
        state.trace.replace('/dropped/', '')));
    }
    this.trace.select.value = state.trace;
    this.show_schedule(this.a, state.a, state.program !== '', 'a');
    this.show_schedule(this.b, state.b, false, 'b');
  }

  /**
   * @param {ReturnType<Controls['schedule_field']>} field
   * @param {string} spec
   * @param {boolean} text whether the program text runs instead
   * @param {'a' | 'b'} side
   */
  show_schedule(field, spec, text, side) {
    const { name, knobs } = knobs_of(spec);
    const schedule = this.names.schedules.find((one) => one.name === name);
    field.choice.select.value = text ? '' : name;
    field.about.textContent = text ? 'The program text below runs; choose a schedule to leave it.'
      : schedule ? schedule.summary : '';
    const shown = `${text} ${spec}`;
    if (field.knobs.dataset.shown === shown) return;
    if (field.knobs.contains(document.activeElement) &&
        field.knobs.dataset.of === name) {
      return;
    }
    field.knobs.dataset.shown = shown;
    field.knobs.dataset.of = name;
    field.knobs.replaceChildren();
    if (!schedule || text) return;
    for (const knob of schedule.knobs) {
      field.knobs.append(this.knob_field(knob, knobs.get(knob.name), (value) => {
        const now = new Map(knobs);
        if (value === knob.default || value === '') now.delete(knob.name);
        else now.set(knob.name, value);
        field.knobs.dataset.shown = '';
        this.changed({ [side]: spec_of(name, now) });
      }));
    }
  }

  /**
   * @param {Knob} knob
   * @param {string | undefined} value
   * @param {(value: string) => void} act
   */
  knob_field(knob, value, act) {
    const words = knob.values.split('|');
    if (words.length > 1 && words.every((word) => /^[\w.-]+$/.test(word))) {
      const choice = this.choice(knob.name,
        words.map((word) => [word, word]), act);
      choice.select.value = value ?? knob.default;
      choice.label.title = knob.summary;
      return choice.label;
    }
    const input = /** @type {HTMLInputElement} */ (element('input', { type: 'text', size: 7,
      placeholder: knob.default, value: value ?? '', spellcheck: 'false' }));
    input.addEventListener('change', () => act(input.value.trim()));
    return element('label', { class: 'field choice', title: `${knob.summary} (${knob.values})` },
      element('span', {}, knob.name), input);
  }
}
