// The fields: numbers with sliders, schedules with their knobs, the trace.
import { element } from '../../report/page/web/dom.js';
import { preset_of, presets } from './presets.js';
import { first_state, is_language_model, number_limits } from './state.js';

/** @typedef {import('./state.js').State} State */
/**
 * @typedef {{ name: string, values: string, default: string, summary: string }} Knob
 * @typedef {{ name: string, summary: string, source: string, synchronous: boolean,
 *   knobs: Knob[] }} Schedule
 * @typedef {{ version: string, schedules: Schedule[],
 *   models: string[], clusters: { name: string, devices: number }[],
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
  tp: ['tp', '', 'tensor-parallel ranks that share each layer', 8],
  dp: ['dp', '', 'data-parallel replicas of the pipeline', 8],
  mbs: ['micro-batch size', '', 'sequences in a micro-batch', 8],
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
/** Fields that the cluster of a language model decides. */
const of_links = ['bandwidth', 'latency'];
const steps_of_slider = 200;
const language_model = 'model:';
/** What a language model begins with. */
const first_language_model = { trace: 'model:llama3-8b@h100', cluster: 'h100x8', p: 4, tp: 2, sp: 1,
  precision: 'bf16', program: '' };
const no_language_model = { cluster: first_state.cluster, tp: first_state.tp, dp: first_state.dp, mbs: first_state.mbs,
  sp: first_state.sp, zero: first_state.zero, precision: first_state.precision };
/**
 * At which field of a language model the engine's sentence belongs, by what it says; the first that fits.
 * @type {[RegExp, string][]}
 */
const fields_of_sentences = [
  [/no precision is called|--precision/, 'precision'],
  [/there is no cluster|devices, and |--cluster/, 'cluster'],
  [/no model is called|no device is called|model:|@DEVICE| must be a whole number/, 'model'],
  [/multiple of tp|not one of \d+$|--tp/, 'tp'],
  [/--zero/, 'zero'],
  [/--dp/, 'dp'],
  [/microbatch_size|--microbatch-size/, 'mbs'],
  [/micro-batch/, 'm'],
  [/stages|ranks/, 'p'],
];

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
    this.trace = this.choice('layers', [['', 'equal layers'],
      ...names.traces.map((one) => /** @type {[string, string]} */ (
        [one.name, `${one.name} (${one.layers} layers)`]))],
    (value) => changed(value === language_model ? { ...first_language_model }
      : { trace: value, ...no_language_model }));
    this.trace.select.id = 'field-trace';
    this.trace.select.options[0].after(element('option', { value: language_model }, 'a language model'));
    /** What is said at a field, by its name. @type {Map<string, HTMLElement>} */
    this.wrong = new Map();
    /** @type {Map<string, HTMLInputElement>} */
    this.texts = new Map();
    this.of_language_model = this.language_model_fields();
    const groups_of_layers = element('fieldset', {}, element('legend', {}, 'model'),
      this.trace.label, this.of_language_model);
    host.append(groups_of_layers, ...groups.map(([title, keys]) => element('fieldset', { 'data-group': title },
      element('legend', {}, title), ...keys.map((key) => this.number_field(key)))));
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

  language_model_fields() {
    const zero = this.choice('ZeRO', ['0', '1', '2', '3'].map((one) => /** @type {[string, string]} */ ([one, one])),
      (value) => this.changed({ zero: value }));
    this.zero = zero.select;
    this.zero.id = 'field-zero';
    this.sp = /** @type {HTMLInputElement} */ (element('input', { type: 'checkbox', id: 'field-sp' }));
    this.sp.addEventListener('change', () => this.changed({ sp: Number(this.sp?.checked) }));
    const names = this.names.models.filter((name) => name !== 'transformer'); // which needs its sizes
    return element('div', { class: 'language-model', hidden: true },
      this.text_field('model', 'llama3-70b@h100', names.map((name) => `${name}@h100`),
        (value) => this.changed({ trace: `${language_model}${value}` })),
      this.text_field('cluster', 'of the model’s device', this.names.clusters.map(({ name }) => name),
        (value) => this.changed({ cluster: value })),
      this.number_field('tp'), this.number_field('dp'), zero.label, this.place_of_wrong('zero'),
      this.text_field('precision', 'as the model says', [], (value) => this.changed({ precision: value })),
      this.number_field('mbs'),
      element('label', { class: 'field choice' }, element('span', {}, 'sequence parallel'), this.sp));
  }

  /**
   * @param {string} key
   * @param {string} placeholder
   * @param {string[]} proposals
   * @param {(value: string) => void} act
   */
  text_field(key, placeholder, proposals, act) {
    const input = /** @type {HTMLInputElement} */ (element('input', { type: 'text', id: `field-${key}`, placeholder,
      list: proposals.length > 0 ? `proposals-${key}` : null, spellcheck: 'false', autocapitalize: 'off',
      autocomplete: 'off' }));
    input.addEventListener('change', () => act(input.value.trim()));
    this.texts.set(key, input);
    return element('div', {},
      element('label', { class: 'field choice' }, element('span', {}, key), input),
      proposals.length > 0 ? element('datalist', { id: `proposals-${key}` },
        ...proposals.map((value) => element('option', { value }))) : null,
      this.place_of_wrong(key));
  }

  /** Below a field. @param {string} key */
  place_of_wrong(key) {
    const place = element('p', { class: 'wrong', id: `wrong-${key}`, role: 'alert', hidden: true });
    this.wrong.set(key, place);
    return place;
  }

  /** The engine's sentence at the field that it is about. @param {State} state @param {string[]} sentences */
  show_wrong(state, sentences) {
    /** @type {Map<string, string>} */
    const said = new Map();
    if (is_language_model(state)) {
      for (const sentence of sentences) {
        const key = fields_of_sentences.find(([words]) => words.test(sentence))?.[1];
        if (key && !said.has(key)) said.set(key, sentence);
      }
    }
    for (const [key, place] of this.wrong) {
      const words = said.get(key) ?? '';
      const field = document.getElementById(`field-${key}`);
      if (place.textContent !== words) place.textContent = words;
      place.hidden = words === '';
      if (words) {
        field?.setAttribute('aria-invalid', 'true');
        field?.setAttribute('aria-describedby', place.id);
      } else {
        field?.removeAttribute('aria-invalid');
        field?.removeAttribute('aria-describedby');
      }
    }
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
    const label = element('label', { class: 'field', title: help },
      element('span', {}, words), slider, number, element('span', { class: 'unit' }, unit));
    return element('div', {}, label, this.place_of_wrong(key));
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
        (is_language_model(state) && of_links.includes(key)) ||
        (state.program !== '' && state.b === '' && (key === 'p' || key === 'm'));
      number.disabled = off;
      slider.disabled = off;
    }
    this.show_language_model(state);
    const trace = is_language_model(state) ? language_model : state.trace;
    if (![...this.trace.select.options].some((one) => one.value === trace)) {
      this.trace.select.append(element('option', { value: state.trace, dir: 'auto' },
        state.trace.replace('/dropped/', '')));
    }
    this.trace.select.value = trace;
    this.show_schedule(this.a, state.a, state.program !== '', 'a');
    this.show_schedule(this.b, state.b, false, 'b');
  }

  /** @param {State} state */
  show_language_model(state) {
    const on = is_language_model(state);
    this.of_language_model.hidden = !on;
    // What a language model and its cluster decide.
    for (const group of document.querySelectorAll('[data-group="times on a device"], [data-group="links"]')) {
      /** @type {HTMLElement} */ (group).hidden = on;
    }
    for (const key of of_layers) {
      const field = this.fields.get(key)?.number.closest('div');
      if (field) field.hidden = on;
    }
    const ranks = this.fields.get('p')?.number.closest('label')?.querySelector('span');
    if (ranks) ranks.textContent = on ? 'pipeline ranks' : 'devices';
    /** @type {[string, string][]} */
    const texts = [['model', on ? state.trace.slice(language_model.length) : ''], ['cluster', state.cluster],
      ['precision', state.precision]];
    for (const [key, value] of texts) {
      const input = this.texts.get(key);
      if (input && document.activeElement !== input) input.value = value;
    }
    if (this.zero) this.zero.value = state.zero;
    if (this.sp) this.sp.checked = state.sp === 1;
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
