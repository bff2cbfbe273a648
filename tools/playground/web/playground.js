// The playground: the state of the fields, the questions that follow from it, and what they answer.
import { element } from '../../report/page/web/dom.js';
import { PageContext } from '../../report/page/web/theme.js';
import { Engine } from './client.js';
import { Controls } from './controls.js';
import { deadlock_picture } from './deadlock.js';
import { Editor } from './editor.js';
import { show_figures } from './figures.js';
import { packed_section } from './packed.js';
import { PlayedDiagram } from './player.js';
import { command_of, request_of } from './request.js';
import { address_of, first_state, state_of } from './state.js';
import { words_of_the_page } from './glossary.js';

/** @typedef {import('./state.js').State} State */

const pause_of_typing = 150; // ms

class Playground {
  /** @param {Engine} engine @param {PageContext} page */
  constructor(engine, page) {
    this.engine = engine;
    this.page = page;
    /** @type {State} */
    this.state = { ...first_state };
    this.busy = false;
    this.again = false;
    /** @type {string[]} paths of timelines that were dropped */
    this.recordings = [];
    this.own_address = '';
    this.typing = 0;
    /** @type {PlayedDiagram | null} */
    this.drawn = null;
  }

  /** @param {import('./controls.js').Names} names */
  build(names) {
    const fields = element('form', { class: 'fields', 'aria-label': 'the case' });
    fields.addEventListener('submit', (event) => event.preventDefault());
    this.controls = new Controls(fields, names, (change) => this.change(change));
    this.figures = element('div', { class: 'scrolls' });
    this.notes = element('div', { class: 'notes', role: 'status' });
    this.diagram = element('section', { class: 'section-diagram', id: 'diagram' });
    this.command = element('code', { class: 'command' });
    this.findings = element('ul', { class: 'findings', id: 'findings', 'aria-live': 'polite' });
    this.stuck = element('div', { class: 'deadlocks' });
    this.time = element('span', { class: 'took' });
    const program = element('section', { class: 'text-of-program' },
      element('h2', {}, 'Program'),
      element('p', { class: 'hint' }, 'The order that A runs. Change it: what is wrong is ' +
        'underlined, and the text runs in place of the schedule. Or drop a file anywhere here: a ' +
        'trace, a program, a schedule CSV of PyTorch, a Chrome trace or a profile.'));
    this.editor = new Editor(program, (text) => this.typed(text));
    program.append(this.findings, this.stuck);
    const theme = /** @type {HTMLSelectElement} */ (element('select', { 'aria-label': 'theme' },
      ...['auto', 'light', 'dark'].map((name) => element('option', { value: name }, name))));
    theme.addEventListener('change', () => this.page.choose(/** @type {any} */ (theme.value)));
    document.body.replaceChildren(
      element('header', {},
        element('div', { class: 'titles' }, element('h1', {}, 'Stageline playground'),
          element('p', { class: 'subtitle' },
            'The simulator itself runs in this page, and nothing leaves it. The address is the ' +
            'question: send it.')),
        element('label', { class: 'switch' }, 'theme ', theme)),
      element('main', { id: 'main', class: 'playground' }, this.controls.presets, fields,
        element('div', { class: 'results' }, this.controls.schedules,
          this.figures, this.notes, this.diagram, program, words_of_the_page())),
      element('footer', {}, element('p', {}, 'As a command: ', this.command),
        element('p', { class: 'made' }, `Stageline ${names.version} `, this.time)));
    this.take_files();
  }

  /** @param {Partial<State>} change */
  change(change) {
    Object.assign(this.state, change);
    this.show();
  }

  /** Shows the state and asks about it; while a question is open, the last state waits. */
  async show() {
    /** @type {Controls} */ (this.controls).show(this.state);
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      do {
        this.again = false;
        await this.ask_about({ ...this.state });
      } while (this.again);
    } catch (error) {
      this.say([error instanceof Error ? error.message : String(error)], true);
    } finally {
      this.busy = false;
    }
  }

  /** @param {State} state */
  async ask_about(state) {
    const started = performance.now();
    await this.set_address(state);
    const sides = /** @type {('a' | 'b')[]} */ (state.b ? ['a', 'b'] : ['a']);
    const requests = [...sides.map((side) => request_of(state, side)),
      ...this.recordings.map((file) => ({ file }))];
    /** @type {HTMLElement} */ (this.command).textContent = sides.map(
      (side) => command_of(state, side)).join(' · ');
    const looked = this.engine.ask('look', JSON.stringify(requests));
    // The worker computes the program while the diagram is drawn.
    const computed = state.program ? null : this.engine.ask('compute', JSON.stringify(request_of(state, 'a')));
    computed?.catch(() => {}); // is thrown where it is awaited
    const reply = await looked;
    if (reply.value.error) throw new Error(reply.value.error.message);
    show_figures(/** @type {HTMLElement} */ (this.figures), reply.value.runs);
    /** @type {Controls} */ (this.controls).show_wrong(state, reply.value.runs.flatMap(
      (/** @type {any} */ run) => run.error?.message ?? []));
    const notes = new Set(reply.value.runs.flatMap(
      (/** @type {any} */ run) => run.row?.notes ?? []));
    if (!reply.value.diagram && this.drawn) notes.add('The diagram is that of the last case that ran.');
    this.say([...notes], false);
    if (reply.value.diagram) this.draw(reply.value.diagram);
    await this.show_program(state, computed);
    const took = performance.now() - started;
    /** @type {HTMLElement} */ (this.time).textContent =
      `engine ${reply.ms.toFixed(1)} ms, all ${took.toFixed(0)} ms`;
    const root = document.documentElement.dataset;
    root.engineMs = reply.ms.toFixed(2);
    root.tookMs = took.toFixed(2);
    root.shown = String(Number(root.shown ?? 0) + 1);
  }

  /** @param {any} diagram */
  draw(diagram) {
    const section = packed_section(diagram);
    if (this.drawn) this.drawn.update(section);
    else this.drawn = new PlayedDiagram(section, /** @type {HTMLElement} */ (this.diagram), this.page);
  }

  /** @param {State} state @param {Promise<import('./client.js').Reply> | null} computed */
  async show_program(state, computed) {
    const editor = /** @type {Editor} */ (this.editor);
    if (!computed) {
      editor.text = state.program;
      await this.check();
    } else {
      const { value } = await computed;
      if (!value.error) editor.text = value.text;
      this.show_findings([], []);
      /** @type {HTMLElement} */ (this.stuck).replaceChildren();
    }
  }

  async check() {
    const editor = /** @type {Editor} */ (this.editor);
    const text = editor.text;
    const { value } = await this.engine.ask('check', text);
    if (editor.text !== text) return;
    const found = value.error ? [{ ...value.error, severity: 'error' }] : value.findings;
    const marks = found.filter((/** @type {any} */ one) => one.line);
    for (const deadlock of value.deadlocks ?? []) {
      for (const op of deadlock.cycle) {
        if (op.line) marks.push({ ...op, severity: 'cycle', message: deadlock.message });
      }
    }
    this.show_findings(found, marks);
    /** @type {HTMLElement} */ (this.stuck).replaceChildren(...(value.deadlocks ?? []).map(
      (/** @type {any} */ one) => deadlock_picture(one, value.devices, value.ops)));
  }

  /**
   * @param {any[]} found
   * @param {import('./editor.js').Mark[]} marks
   */
  show_findings(found, marks) {
    const editor = /** @type {Editor} */ (this.editor);
    editor.mark(marks);
    /** @type {HTMLElement} */ (this.findings).replaceChildren(...found.map((one) =>
      element('li', { class: one.severity },
        one.line ? element('button', { type: 'button', onclick: () => editor.go_to(one) },
          `line ${one.line}${one.column ? `, column ${one.column}` : ''}`) : null,
        ` ${one.severity}: ${one.message.replace(/^line \d+(, column \d+)?: /, '')}`)));
  }

  /** @param {string} text */
  typed(text) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.change({ program: text }), pause_of_typing);
  }

  /** @param {string[]} words @param {boolean} bad */
  say(words, bad) {
    /** @type {HTMLElement} */ (this.notes).replaceChildren(...words.map((one) =>
      element('p', { class: bad ? 'failure' : 'hint', dir: 'auto' }, one)));
  }

  /** @param {State} state */
  async set_address(state) {
    this.own_address = await address_of(state);
    history.replaceState(null, '', `#${this.own_address}`);
  }

  async read_address() {
    if (location.hash.replace(/^#/, '') === this.own_address && this.own_address) return;
    this.state = await state_of(location.hash);
    await this.show();
  }

  take_files() {
    const body = document.body;
    body.addEventListener('dragover', (event) => {
      event.preventDefault();
      body.classList.add('dropping');
    });
    body.addEventListener('dragleave', () => body.classList.remove('dropping'));
    body.addEventListener('drop', async (event) => {
      event.preventDefault();
      body.classList.remove('dropping');
      for (const file of event.dataTransfer?.files ?? []) await this.take(file);
    });
  }

  /** @param {File} file */
  async take(file) {
    try {
      const path = await this.engine.put(file);
      const { value } = await this.engine.ask('open', path);
      if (value.error) throw new Error(value.error.message);
      if (value.kind === 'program') this.change({ program: value.text });
      if (value.kind === 'trace') this.change({ trace: path });
      if (value.kind === 'timeline') {
        this.recordings = [path];
        this.change({});
      }
    } catch (error) {
      this.say([error instanceof Error ? error.message : String(error)], true);
    }
  }
}

async function start_playground() {
  const page = new PageContext();
  page.apply();
  const engine = new Engine();
  try {
    const started = performance.now();
    await engine.start();
    const playground = new Playground(engine, page);
    playground.build((await engine.ask('names')).value);
    document.documentElement.dataset.startMs = (performance.now() - started).toFixed(0);
    addEventListener('hashchange', () => playground.read_address());
    await playground.read_address();
    Object.assign(globalThis, { playground });
    document.documentElement.dataset.ready = 'true';
  } catch (error) {
    document.body.append(element('p', { class: 'failure', role: 'alert' },
      `The playground cannot start: ${error instanceof Error ? error.message : error}. It needs ` +
      'Chromium 95, Firefox 113 or Safari 16.4, or later.'));
    throw error;
  }
}

start_playground();
