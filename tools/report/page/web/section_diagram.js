// Space-time diagrams of one or several runs on one time axis: see diagram.hpp for the data.
import { RowsCanvas, axis_height, gutter } from './diagram_canvas.js';
import { chooser, show_legend, show_memory_legend, tool } from './diagram_controls.js';
import { kind_words, show_details } from './diagram_details.js';
import { download_png, svg_of_view } from './diagram_export.js';
import { listen } from './diagram_input.js';
import { Layout, first_after } from './diagram_layout.js';
import { canvas_surface, draw_marks } from './diagram_marks.js';
import { paint_memory } from './diagram_memory.js';
import { Minimap } from './diagram_minimap.js';
import { Run } from './diagram_run.js';
import { table_of_ops } from './diagram_table.js';
import { download, element } from './dom.js';
import { shortened, time_words } from './words.js';

const keys = 'Wheel, pinch or + and − zoom; drag or arrow keys move; 0 shows the whole. Click an op, ' +
  'or press j and k for the next and the one before in its lane, ↑ and ↓ for another lane; f follows ' +
  'its micro-batch, c shows the critical path, i what idle time is due to, Esc ends all that.';
const most_streams = 16; // devices with rows for messages from the start
const longest_list = 512; // entries of a choice

class Diagram {
  // Made by build().
  /** @type {HTMLElement} */ frame;
  /** @type {HTMLElement} */ tip;
  /** @type {HTMLElement} */ details;
  /** @type {HTMLElement} */ status;
  /** @type {HTMLElement} */ legend;
  /** @type {HTMLElement} */ memory_legend;
  /** @type {HTMLElement} */ path_button;
  /** @type {HTMLElement} */ idle_button;
  /** @type {HTMLInputElement} */ follow;
  /** @type {{ stage: HTMLSelectElement, kind: HTMLSelectElement }} */ choosers;
  /** @type {() => void} */ refresh_table;
  /** @type {Set<string>} */ kinds;
  has_memory = false;
  height = 0;

  /**
   * @param {import('./data.js').Section} section
   * @param {HTMLElement} host
   * @param {import('./theme.js').PageContext} page
   */
  constructor(section, host, page) {
    this.data = section.data;
    this.host = host;
    this.page = page;
    this.runs = this.data.runs.map(
      (/** @type {any} */ _, /** @type {number} */ i) => new Run(this.data, i, section.blobs));
    this.total = Math.max(1, ...this.runs.map((/** @type {Run} */ run) => run.makespan));
    this.view = { from: 0, to: this.total, top: 0 };
    /** @type {import('./diagram_paint.js').Focus} */
    this.focus = { kind: '', stage: -1, microbatch: -1, path: false, idle: false };
    this.device = -1; // the one wanted, or all
    /** @type {{ run: Run, span: number } | null} */
    this.selected = null;
    this.layout = new Layout(this.runs);
    const canvas = () => /** @type {HTMLCanvasElement} */ (element('canvas', {}));
    this.canvas = canvas();
    this.map_canvas = canvas();
    this.memory_canvas = canvas();
    this.canvas.className = 'rows';
    this.map_canvas.className = 'minimap';
    this.rows = new RowsCanvas(this.canvas, this.layout, page);
    this.minimap = new Minimap(this.map_canvas, this.rows);
    this.memory_of = this.fullest();
    this.streams = this.runs.every((/** @type {Run} */ run) => run.devices.length <= most_streams);
    this.waiting = false;
    this.build();
    this.arrange();
    listen(this.frame, this.canvas, this);
    this.drag_minimap();
    page.on_theme(() => {
      this.rows.set_colours();
      this.minimap.forget();
      this.show_legends();
      this.paint();
    });
    new ResizeObserver(() => { this.arrange(); this.paint(); }).observe(this.frame);
    this.show_legends();
    this.paint();
  }

  /** The run and device with the least room left, or the most bytes. */
  fullest() {
    let best = { run: 0, device: 0, share: -1 };
    this.runs.forEach((/** @type {Run} */ run, /** @type {number} */ r) => {
      run.peaks.forEach((peak, device) => {
        const share = peak.bytes / (run.limits[device] ?? 1e30);
        if (share > best.share) best = { run: r, device, share };
      });
    });
    return best;
  }

  build() {
    const runs = /** @type {Run[]} */ (this.runs);
    this.kinds = new Set();
    let stages = 0;
    for (const run of runs) {
      const seen = new Uint8Array(run.kinds.length);
      for (let i = 0; i < run.spans; ++i) {
        seen[run.kind[i]] = 1;
        if (run.stage[i] >= stages) stages = run.stage[i] + 1;
      }
      seen.forEach((one, kind) => { if (one) this.kinds.add(run.kinds[kind]); });
    }
    const numbers = (/** @type {number} */ count) => Array.from({ length: Math.min(count, longest_list) },
      (_, i) => /** @type {[string, string]} */ ([String(i), String(i)]));
    this.path_button = tool('critical path', 'c: the chain of ops that sets the pace', () => this.key('c'));
    this.idle_button = tool('idle time', 'i: what idle time is due to', () => this.key('i'));
    const stage = chooser('stage', [['-1', 'all'], ...numbers(stages)],
      (value) => this.set_focus({ stage: Number(value) }));
    const kind = chooser('kind', [['', 'all'],
      .../** @type {[string, string][]} */ ([...this.kinds].map((one) => [one, kind_words(one)]))],
    (value) => this.set_focus({ kind: value }));
    const devices = chooser('device', [['-1', 'all'], .../** @type {[string, string][]} */ (
      runs[0].devices.slice(0, longest_list).map((name, i) => [String(i), shortened(name, 30)]))],
    (value) => { this.device = Number(value); this.arrange(); this.paint(); });
    this.follow = /** @type {HTMLInputElement} */ (element('input', { type: 'number', min: 0, size: 6,
      placeholder: 'all' }));
    this.follow.addEventListener('input', () =>
      this.set_focus({ microbatch: this.follow.value === '' ? -1 : Number(this.follow.value) }));
    const streams = /** @type {HTMLInputElement} */ (element('input', { type: 'checkbox' }));
    streams.checked = this.streams;
    streams.addEventListener('change', () => {
      this.streams = streams.checked;
      this.arrange();
      this.paint();
    });
    this.choosers = { stage: stage.select, kind: kind.select };
    const tools = element('div', { class: 'controls tools', role: 'group', 'aria-label': 'diagram' },
      tool('whole', '0: the whole run', () => this.key('0')),
      tool('−', '−: zoom out', () => this.key('-')), tool('+', '+: zoom in', () => this.key('+')),
      this.path_button, this.idle_button,
      element('label', { title: 'f: follow the micro-batch of the op that is selected' },
        'micro-batch ', this.follow),
      stage.label, kind.label, devices.label,
      element('label', {}, streams, ' messages and copies'),
      tool('SVG', 'save the view as SVG', () => download('stageline.svg', new Blob(
        [svg_of_view(this.rows, this.view, this.canvas.clientWidth, this.canvas.clientHeight,
          this.focus, this.selected)], { type: 'image/svg+xml' }))),
      tool('PNG', 'save the view as PNG', () => download_png(
        this.has_memory ? [this.canvas, this.memory_canvas] : [this.canvas], this.rows.ink.bg)));
    this.tip = element('div', { class: 'tip', hidden: true });
    this.frame = element('div', { class: 'frame', tabindex: 0, role: 'application',
      'aria-label': this.summary(), 'aria-describedby': `keys-${this.host.id || 'diagram'}` },
    this.map_canvas, this.canvas, this.tip);
    this.has_memory = runs.some((run) => run.curves.some((curve) => curve.at.length > 0));
    this.details = element('aside', { class: 'details', 'aria-label': 'the selected op' });
    this.status = element('p', { class: 'unseen', 'aria-live': 'polite' });
    this.legend = element('div', { class: 'legend' });
    this.memory_legend = element('div', { class: 'legend' });
    const memory = this.has_memory ? element('div', { class: 'memory' },
      this.memory_chooser(runs), this.memory_canvas, this.memory_legend) : null;
    const table = /** @type {HTMLDetailsElement} */ (element('details', { class: 'table' },
      element('summary', {}, 'The ops of the view as a table')));
    this.refresh_table = table_of_ops(table, () => ({ rows: this.layout.rows, view: this.view }));
    this.host.append(tools, this.frame, this.legend, ...(memory ? [memory] : []), this.details,
      element('p', { class: 'controls hint', id: `keys-${this.host.id || 'diagram'}` }, keys),
      this.status, table);
    this.clear_details();
  }

  /** @param {Run[]} runs */
  memory_chooser(runs) {
    /** @type {[string, string][]} */
    const options = [];
    runs.forEach((run, r) => run.curves.slice(0, longest_list).forEach((_, device) => {
      const name = shortened(run.devices[device], 30);
      options.push([`${r},${device}`, runs.length > 1 ? `${shortened(run.title, 30)} · ${name}` : name]);
    }));
    const { label, select } = chooser('memory of', options, (value) => {
      const [run, device] = value.split(',').map(Number);
      this.memory_of = { run, device, share: 0 };
      this.paint();
    });
    select.value = `${this.memory_of.run},${this.memory_of.device}`;
    const thin = runs.some((run) => !run.exact_curves);
    return element('p', { class: 'memory-of' }, label,
      thin ? ' the highest of each of many equal intervals is drawn' : null);
  }

  summary() {
    const words = this.runs.map((/** @type {Run} */ run) => `${shortened(run.title, 60)}: ` +
      `${run.spans} ops on ${run.devices.length} devices in ${time_words(run.makespan)}`);
    return `Space-time diagram. ${words.join('; ')}`;
  }

  arrange() {
    const room = Math.max(260, Math.min(640, innerHeight * 0.6));
    this.layout.arrange(room, this.streams, (device) => this.device < 0 || device === this.device);
    this.height = Math.min(this.layout.height, room) + axis_height;
    this.view.top = Math.max(0, Math.min(this.view.top, this.layout.height - this.height + axis_height));
    this.minimap.forget();
  }

  show_legends() {
    const causes = new Set();
    if (this.focus.idle) {
      for (const run of this.runs) for (const cause of run.idle_cause) causes.add(run.causes[cause]);
    }
    show_legend(this.legend, this.page, this.kinds, this.focus.idle ? [...causes] : null);
    const run = this.runs[this.memory_of.run];
    const names = /** @type {string[]} */ (this.data.categories);
    const used = names.filter((_, c) => run.curves.some((/** @type {any} */ curve) => {
      for (let i = c; i < curve.bytes.length; i += names.length) if (curve.bytes[i] > 0) return true;
      return false;
    }));
    show_memory_legend(this.memory_legend, this.page, used);
  }

  paint() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint_now();
    });
  }

  paint_now() {
    const width = this.frame.clientWidth;
    if (width <= gutter) return;
    const began = performance.now();
    this.rows.paint(this.view, width, this.height, this.focus);
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
    context.save();
    context.beginPath();
    context.rect(gutter, axis_height, width - gutter, this.height - axis_height);
    context.clip();
    draw_marks(canvas_surface(context), this.layout, this.view, width - gutter, this.selected,
      this.focus.path, this.rows.ink);
    context.restore();
    this.minimap.paint(this.view, width, this.total);
    if (this.has_memory) {
      paint_memory(this.memory_canvas, this.runs[this.memory_of.run], this.memory_of.device,
        this.data.categories, this.view, width, this.page);
    }
    this.frame.dataset.fromPs = String(this.view.from);
    this.frame.dataset.toPs = String(this.view.to);
    this.frame.dataset.paintMs = (performance.now() - began).toFixed(2);
  }

  /** @param {Partial<import('./diagram_paint.js').Focus>} change */
  set_focus(change) {
    Object.assign(this.focus, change);
    this.path_button.setAttribute('aria-pressed', String(this.focus.path));
    this.idle_button.setAttribute('aria-pressed', String(this.focus.idle));
    if (change.microbatch !== undefined) {
      this.follow.value = this.focus.microbatch < 0 ? '' : String(this.focus.microbatch);
    }
    if (change.stage !== undefined) this.choosers.stage.value = String(this.focus.stage);
    if (change.kind !== undefined) this.choosers.kind.value = this.focus.kind;
    this.show_legends();
    this.paint();
  }

  /** @param {number} from @param {number} to */
  show_times(from, to) {
    const least = Math.min(this.total, 1000); // ps
    const length = Math.min(this.total, Math.max(least, to - from));
    const begin = Math.max(0, Math.min(from, this.total - length));
    this.view.from = begin;
    this.view.to = begin + length;
    this.refresh_table();
    this.paint();
  }

  // Moves (diagram_input.js). Places are px of the canvas.

  /** @param {number} x */
  time_at(x) {
    return this.view.from + (x - gutter) / (this.frame.clientWidth - gutter) *
      (this.view.to - this.view.from);
  }

  /** @param {number} factor @param {number} x */
  zoom(factor, x) {
    const { from, to } = this.view;
    if (factor > 1 && to - from >= this.total) return false;
    const time = Math.max(from, Math.min(to, this.time_at(x)));
    this.show_times(time - (time - from) * factor, time + (to - time) * factor);
    return true;
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const { from, to } = this.view;
    const shift = dx / (this.frame.clientWidth - gutter) * (to - from);
    this.scroll_to(this.view.top - dy);
    this.show_times(from - shift, to - shift);
  }

  /** @param {number} top */
  scroll_to(top) {
    this.view.top = Math.max(0, Math.min(top, this.layout.height - this.height + axis_height));
  }

  /** The op at a place; -1: none. @param {number} x @param {number} y */
  op_at(x, y) {
    const row = y < axis_height || x < gutter ? null : this.layout.row_at(y - axis_height + this.view.top);
    if (!row) return null;
    const time = this.time_at(x);
    const track = Math.min(row.tracks.length - 1,
      Math.floor((y - axis_height + this.view.top - row.y) / row.height * row.tracks.length));
    const list = row.tracks[track];
    const at = first_after(row, list, time, 0);
    if (at >= (list ? list.length : row.run.lane_begin[row.lane + 1])) return null;
    const span = list ? list[at] : at;
    return row.run.start[span] <= time ? { run: row.run, span } : null;
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    const found = this.op_at(x, y);
    this.canvas.style.cursor = found ? 'pointer' : 'grab';
    this.tip.hidden = !found;
    if (!found) return;
    show_details(this.tip, found.run, found.span, null);
    const right = x > this.frame.clientWidth * 0.6;
    this.tip.style.left = right ? '' : `${x + 16}px`;
    this.tip.style.right = right ? `${this.frame.clientWidth - x + 12}px` : '';
    this.tip.style.top = `${y + this.canvas.offsetTop + 18}px`;
  }

  leave() {
    this.tip.hidden = true;
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const found = this.op_at(x, y);
    if (found) this.select(found.run, found.span, false);
    else this.clear_details();
    this.paint();
  }

  clear_details() {
    this.selected = null;
    delete this.details.dataset.op;
    this.details.replaceChildren(element('p', { class: 'hint' },
      'Nothing is selected. Click an op, or press j.'));
  }

  /**
   * @param {Run} run
   * @param {number} span
   * @param {boolean} reveal moves the view so that the op is in it
   */
  select(run, span, reveal) {
    this.selected = { run, span };
    show_details(this.details, run, span, (other) => this.select(run, other, true));
    this.status.textContent = `${run.op(span)}, ${time_words(run.start[span])} to ${time_words(run.end[span])}`;
    if (reveal) {
      const { from, to } = this.view;
      const middle = (run.start[span] + run.end[span]) / 2;
      if (run.start[span] < from || run.end[span] > to) {
        this.show_times(middle - (to - from) / 2, middle + (to - from) / 2);
      }
      const row = this.layout.row_of(run, run.lane_of(span));
      if (row && (row.y < this.view.top ||
          row.y + row.height > this.view.top + this.height - axis_height)) {
        this.scroll_to(row.y - 40);
      }
    }
    this.paint();
  }

  /** The next op of the lane, or the first in the view. @param {number} step */
  next_op(step) {
    if (!this.selected) {
      for (const row of this.layout.rows) {
        const at = first_after(row, null, this.view.from, 0);
        if (at < row.run.lane_begin[row.lane + 1]) return this.select(row.run, at, true);
      }
      return undefined;
    }
    const { run, span } = this.selected;
    const lane = run.lane_of(span);
    const next = span + step;
    if (next >= run.lane_begin[lane] && next < run.lane_begin[lane + 1]) this.select(run, next, true);
    return undefined;
  }

  /** The op at the same time in the next row. @param {number} step */
  next_lane(step) {
    const { rows } = this.layout;
    if (!this.selected) return this.pan(0, -step * 60);
    const { run, span } = this.selected;
    const row = this.layout.row_of(run, run.lane_of(span));
    for (let i = row ? rows.indexOf(row) + step : 0; i >= 0 && i < rows.length; i += step) {
      const end = rows[i].run.lane_begin[rows[i].lane + 1];
      const at = Math.min(end - 1, first_after(rows[i], null, run.start[span], 0));
      if (at >= rows[i].run.lane_begin[rows[i].lane]) return this.select(rows[i].run, at, true);
    }
    return undefined;
  }

  /** Whether the key means something. @param {string} name */
  key(name) {
    const plot = this.frame.clientWidth - gutter;
    const middle = gutter + plot / 2;
    /** @type {Record<string, () => void>} */
    const meaning = {
      ArrowLeft: () => this.pan(plot / 8, 0),
      ArrowRight: () => this.pan(-plot / 8, 0),
      ArrowUp: () => this.next_lane(-1),
      ArrowDown: () => this.next_lane(1),
      '+': () => this.zoom(2 / 3, middle),
      '=': () => this.zoom(2 / 3, middle),
      '-': () => this.zoom(3 / 2, middle),
      '−': () => this.zoom(3 / 2, middle),
      0: () => this.show_times(0, this.total),
      j: () => this.next_op(1),
      k: () => this.next_op(-1),
      c: () => this.set_focus({ path: !this.focus.path, idle: false }),
      i: () => this.set_focus({ idle: !this.focus.idle, path: false }),
      f: () => this.set_focus({ microbatch: this.focus.microbatch >= 0 || !this.selected ||
        this.selected.run.counts_updates(this.selected.span) ? -1
        : this.selected.run.microbatch[this.selected.span] }),
      Escape: () => {
        this.clear_details();
        this.set_focus({ kind: '', stage: -1, microbatch: -1, path: false, idle: false });
      },
    };
    if (!(name in meaning)) return false;
    meaning[name]();
    return true;
  }

  drag_minimap() {
    const move = (/** @type {PointerEvent} */ event) => {
      const box = this.map_canvas.getBoundingClientRect();
      const time = (event.clientX - box.left - gutter) / (box.width - gutter) * this.total;
      const half = (this.view.to - this.view.from) / 2;
      this.show_times(time - half, time + half);
    };
    this.map_canvas.addEventListener('pointerdown', (event) => {
      this.map_canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    this.map_canvas.addEventListener('pointermove', (event) => { if (event.buttons) move(event); });
  }
}

/** @type {import('./sections.js').SectionKind} */
export const section_diagram = {
  kind: 'diagram',
  render(section, host, page) {
    new Diagram(section, host, page);
  },
};
