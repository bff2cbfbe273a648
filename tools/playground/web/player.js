// Plays the diagram: a time to which the runs have come, its tools, and the veil over what is later.
import { axis_height, gutter } from '../../report/page/web/diagram_canvas.js';
import { tool } from '../../report/page/web/diagram_controls.js';
import { minimap_height } from '../../report/page/web/diagram_minimap.js';
import { lane_kinds } from '../../report/page/web/diagram_run.js';
import { element } from '../../report/page/web/dom.js';
import { Diagram } from '../../report/page/web/section_diagram.js';
import { time_words } from '../../report/page/web/words.js';
import { MomentTables } from './moment.js';

/** @typedef {import('../../report/page/web/diagram_run.js').Run} Run */

const veil = 0.8; // of what is later
const longest_frame = 100; // ms: the page may have been hidden
const pause_of_steps = 1000; // ms between ops where motion is reduced
const most_named = 3;
/** Seconds for the whole, and their words. */
/** @type {[number, string][]} */
const speeds = [[5, 'fast: the whole in 5 s'], [20, 'the whole in 20 s'], [60, 'slow: the whole in 60 s'],
  [300, 'very slow: the whole in 300 s']];
const usual_speed = 20;

/** The distinct ends of the ops that devices compute, sorted. @param {Run[]} runs */
function stops_of(runs) {
  /** @type {Set<number>} */
  const ends = new Set();
  for (const run of runs) {
    for (let device = 0; device < run.devices.length; ++device) {
      const until = run.lane_begin[device * lane_kinds + 1];
      for (let i = run.lane_begin[device * lane_kinds]; i < until; ++i) ends.add(run.end[i]);
    }
  }
  return Float64Array.from(ends).sort();
}

/** What ended at a time: "gpu0 ended 0F3, gpu1 ended 1B0". @param {Run[]} runs @param {number} time */
function ended_words(runs, time) {
  /** @type {string[]} */
  const words = [];
  for (const run of runs) {
    run.devices.forEach((device, d) => {
      for (let i = run.lane_begin[d * lane_kinds]; i < run.lane_begin[d * lane_kinds + 1]; ++i) {
        if (run.end[i] !== time) continue;
        const whose = runs.length > 1 ? `${'AB'[run.number] ?? run.title} ` : '';
        words.push(`${whose}${device} ended ${run.op(i)}`);
      }
    });
  }
  const more = words.length - most_named;
  return words.slice(0, most_named).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

export class Player {
  /** @param {() => void} moved the time is another */
  constructor(moved) {
    this.moved = moved;
    /** @type {Run[]} */
    this.runs = [];
    this.stops = new Float64Array(0);
    this.total = 1;
    this.time = Infinity; // ps; the end: everything has run
    this.playing = false;
    this.seconds = usual_speed;
    this.before = 0; // ms: the last frame
    this.waiting = 0;
    this.still = matchMedia('(prefers-reduced-motion: reduce)');
    this.tables = new MomentTables();
    this.play_button = tool('▶ play', 'space: play or pause', () => this.toggle());
    this.slider = /** @type {HTMLInputElement} */ (element('input', { type: 'range', min: 0, max: 1, step: 'any',
      'aria-label': 'time of the diagram' }));
    this.slider.addEventListener('input', () => {
      this.pause();
      this.go_to(Number(this.slider.value));
    });
    this.words = element('output', {});
    this.rate = element('span', { class: 'rate' });
    this.speed = /** @type {HTMLSelectElement} */ (element('select', {},
      ...speeds.map(([seconds, words]) => element('option', { value: seconds }, words))));
    this.speed.value = String(usual_speed);
    this.speed.addEventListener('change', () => {
      this.seconds = Number(this.speed.value);
      this.show();
    });
    this.status = element('p', { class: 'ended hint', 'aria-live': 'polite' });
    this.host = element('div', { class: 'player', role: 'group', 'aria-label': 'play the diagram' },
      element('div', { class: 'controls' }, this.play_button,
        this.named(tool('|◀', 'Home: to the beginning', () => this.jump(0)), 'to the beginning'),
        this.named(tool('◀', '←: one op back', () => this.step(-1)), 'one op back'),
        this.named(tool('▶', '→: one op forward', () => this.step(1)), 'one op forward'),
        this.named(tool('▶|', 'End: to the end', () => this.jump(Infinity)), 'to the end'),
        element('label', { class: 'time' }, element('span', {}, 'time'), this.slider, this.words),
        element('label', {}, 'speed ', this.speed), this.rate),
      this.status);
    this.host.addEventListener('keydown', (event) => this.key(event));
    this.still.addEventListener('change', () => {
      this.pause();
      this.show();
    });
  }

  /** @param {HTMLElement} button @param {string} words */
  named(button, words) {
    button.setAttribute('aria-label', words);
    return button;
  }

  get at_end() {
    return this.time >= this.total;
  }

  /** Other runs: the time stays, and the end stays the end.
   * @param {Run[]} runs @param {number} total @param {string[]} categories */
  set_runs(runs, total, categories) {
    const ended = this.at_end;
    this.runs = runs;
    this.total = total;
    this.stops = stops_of(runs);
    this.slider.max = String(total);
    this.tables.set_runs(runs, categories);
    this.time = ended ? total : Math.min(this.time, total);
    this.status.textContent = '';
    this.show();
  }

  show() {
    this.slider.value = String(this.time);
    const words = `${time_words(this.time)} of ${time_words(this.total)}`;
    this.words.textContent = words;
    this.slider.setAttribute('aria-valuetext', words);
    this.play_button.textContent = this.playing ? '⏸ pause' : '▶ play';
    this.speed.disabled = this.still.matches;
    this.rate.textContent = this.still.matches ? 'motion is reduced: one op a second'
      : `1 s shows ${time_words(this.total / this.seconds, 3)}`;
    if (!this.at_end) this.tables.host.hidden = false;
    if (!this.tables.host.hidden) this.tables.show(this.time);
  }

  /** @param {number} time ps */
  go_to(time) {
    this.time = Math.max(0, Math.min(this.total, time));
    this.show();
    this.moved();
  }

  /** @param {number} time ps */
  jump(time) {
    this.pause();
    this.go_to(time);
    this.status.textContent = this.at_end ? 'the end' : 'the beginning';
  }

  /** To the next time at which an op ends, or the one before. @param {number} by */
  step(by) {
    this.pause();
    this.move_by_op(by);
  }

  /** @param {number} by */
  move_by_op(by) {
    const later = this.stops.findIndex((stop) => stop > this.time);
    const next = later < 0 ? this.stops.length : later;
    const here = next > 0 && this.stops[next - 1] === this.time;
    const at = by > 0 ? next : next - (here ? 2 : 1);
    this.go_to(at < 0 ? 0 : this.stops[at] ?? this.total);
    this.status.textContent = this.time === 0 ? 'the beginning'
      : `${time_words(this.time)}: ${ended_words(this.runs, this.time) || 'the end'}`;
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /** From the time; from the beginning if it is the end. */
  play() {
    this.playing = true;
    this.status.textContent = '';
    this.before = performance.now();
    if (this.at_end) this.go_to(0);
    this.show();
    this.next_frame();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.waiting);
    clearTimeout(this.waiting);
    this.show();
  }

  next_frame() {
    if (this.still.matches) {
      this.waiting = setTimeout(() => {
        this.move_by_op(1);
        this.go_on();
      }, pause_of_steps);
      return;
    }
    this.waiting = requestAnimationFrame((now) => {
      this.advance(Math.max(0, now - this.before));
      this.before = now;
      this.go_on();
    });
  }

  go_on() {
    if (this.at_end) this.pause();
    else if (this.playing) this.next_frame();
  }

  /** What a frame shows later than the one before. @param {number} ms */
  advance(ms) {
    this.go_to(this.time + Math.min(ms, longest_frame) / 1000 / this.seconds * this.total);
  }

  /** Keys of the tools; a choice keeps its own. @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target === this.speed) return;
    // A button that has the focus is pressed by the space bar.
    if (event.key === ' ' && event.target instanceof HTMLButtonElement) return;
    const act = { ' ': () => this.toggle(), ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
      Home: () => this.jump(0), End: () => this.jump(Infinity) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Keys of the diagram, whose arrows move the view. @param {KeyboardEvent} event */
  key_of_diagram(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { ' ': () => this.toggle(), '.': () => this.step(1), ',': () => this.step(-1) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

/** A diagram that can be played. */
export class PlayedDiagram extends Diagram {
  /**
   * @param {import('../../report/page/web/data.js').Section} section
   * @param {HTMLElement} host
   * @param {import('../../report/page/web/theme.js').PageContext} page
   */
  constructor(section, host, page) {
    super(section, host, page);
    this.player = new Player(() => this.time_moved());
    this.tools.host.after(this.player.host);
    this.memory.host.after(this.player.tables.host);
    const keys = element('p', { class: 'controls hint' }, 'Space plays and pauses the diagram; , and . are one op ' +
      'back and forward there, ← and → in its tools.');
    this.selection.status.before(keys);
    keys.id = `${host.id}-player-keys`;
    this.frame.setAttribute('aria-describedby', `${this.frame.getAttribute('aria-describedby')} ${keys.id}`);
    this.frame.addEventListener('keydown', (event) => this.player.key_of_diagram(event));
    this.player.set_runs(this.runs, this.view.total, section.data.categories);
  }

  /** @param {import('../../report/page/web/data.js').Section} section */
  update(section) {
    super.update(section);
    this.player.set_runs(this.runs, this.view.total, section.data.categories);
  }

  /** The view follows the time. */
  time_moved() {
    const { time } = this.player;
    if (time < this.view.from || time > this.view.to) {
      this.view.center(time);
      this.refresh_table();
    }
    this.paint();
  }

  paint_now() {
    super.paint_now();
    const width = this.frame.clientWidth;
    if (width <= gutter) return;
    this.frame.dataset.timePs = String(this.player.time);
    if (!this.player.at_end) this.paint_time(width);
  }

  /** @param {number} width of the canvases */
  paint_time(width) {
    const { player: { time }, view, rows: { ink } } = this;
    const x = Math.max(gutter, Math.min(width, gutter + (time - view.from) / view.length * view.plot));
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
    context.save();
    context.beginPath();
    context.rect(gutter, axis_height, width - gutter, this.height - axis_height);
    context.clip();
    for (const row of this.layout.rows) {
      cover(context, ink.row, x, row.y - view.top + axis_height, width - x, row.height);
    }
    context.restore();
    draw_time(context, ink.accent, x, axis_height - 4, this.height);
    if (!this.memory.host.hidden) {
      const below = /** @type {CanvasRenderingContext2D} */ (this.memory.canvas.getContext('2d'));
      cover(below, ink.bg, x, 0, width - x, this.memory.height);
      draw_time(below, ink.accent, x, 0, this.memory.height);
    }
    const map = /** @type {CanvasRenderingContext2D} */ (this.map_canvas.getContext('2d'));
    draw_time(map, ink.accent, gutter + time / view.total * (width - gutter), 0, minimap_height);
  }
}

/** @param {CanvasRenderingContext2D} context @param {string} colour @param {number} x @param {number} y
 *  @param {number} width @param {number} height */
function cover(context, colour, x, y, width, height) {
  context.globalAlpha = veil;
  context.fillStyle = colour;
  context.fillRect(x, y, width, height);
  context.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} context @param {string} colour @param {number} x @param {number} from
 *  @param {number} to */
function draw_time(context, colour, x, from, to) {
  context.fillStyle = colour;
  context.fillRect(Math.round(x) - 1, from, 2, to - from);
}
