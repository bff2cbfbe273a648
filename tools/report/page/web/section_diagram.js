// Space-time diagrams of one or several runs on one time axis: see diagram.hpp for the data.
import { RowsCanvas, axis_height, gutter } from './diagram_canvas.js';
import { show_legend } from './diagram_controls.js';
import { show_op_tip } from './diagram_details.js';
import { download_png, svg_of_view } from './diagram_export.js';
import { listen } from './diagram_input.js';
import { key_actions, key_words } from './diagram_keys.js';
import { Layout } from './diagram_layout.js';
import { canvas_surface, draw_marks } from './diagram_marks.js';
import { MemoryPanel } from './diagram_memory_panel.js';
import { Minimap } from './diagram_minimap.js';
import { Run } from './diagram_run.js';
import { Selection } from './diagram_selection.js';
import { table_of_ops } from './diagram_table.js';
import { Toolbar } from './diagram_toolbar.js';
import { Viewport } from './diagram_viewport.js';
import { download, element } from './dom.js';
import { shortened, time_words } from './words.js';

const most_streams = 16; // devices with rows for messages from the start

/** @param {import('./data.js').Section} section @returns {Run[]} */
const runs_of = (section) => section.data.runs.map(
  (/** @type {any} */ _, /** @type {number} */ i) => new Run(section.data, i, section.blobs));

/** @param {Run[]} runs */
const longest = (runs) => Math.max(1, ...runs.map((run) => run.makespan));

export class Diagram {
  /**
   * @param {import('./data.js').Section} section
   * @param {HTMLElement} host
   * @param {import('./theme.js').PageContext} page
   */
  constructor(section, host, page) {
    this.page = page;
    this.runs = runs_of(section);
    this.kinds = new Set(this.runs.flatMap((run) => run.kinds_seen));
    this.view = new Viewport(longest(this.runs));
    /** @type {import('./diagram_paint.js').Focus} */
    this.focus = { kind: '', stage: -1, microbatch: -1, path: false, idle: false };
    this.device = -1; // the one wanted, or all
    this.streams = this.runs.every((run) => run.devices.length <= most_streams);
    this.height = 0;
    this.waiting = false;
    this.memory_waits = true;
    this.legend_shown = '';
    this.layout = new Layout(this.runs);
    this.canvas = /** @type {HTMLCanvasElement} */ (element('canvas', { class: 'rows' }));
    this.map_canvas = /** @type {HTMLCanvasElement} */ (element('canvas', { class: 'minimap' }));
    this.rows = new RowsCanvas(this.canvas, this.layout, page);
    this.minimap = new Minimap(this.map_canvas, this.rows);
    this.tools = new Toolbar(this, this.streams);
    this.memory = new MemoryPanel(() => {
      this.memory.show_legend(page);
      this.paint();
    });
    this.selection = new Selection(this.layout, (run, span, reveal) => {
      if (reveal) this.reveal(run, span);
      this.paint();
    });
    this.tip = element('div', { class: 'tip', hidden: true });
    this.frame = element('div', { class: 'frame', tabindex: 0, role: 'application',
      'aria-describedby': `keys-${host.id || 'diagram'}` }, this.map_canvas, this.canvas, this.tip);
    this.legend = element('div', { class: 'legend' });
    this.table = /** @type {HTMLDetailsElement} */ (element('details', { class: 'table' },
      element('summary', {}, 'The ops of the view as a table')));
    this.refresh_table = table_of_ops(this.table, () => ({ rows: this.layout.rows, view: this.view }));
    host.append(this.tools.host, this.frame, this.legend, this.memory.host, this.selection.details,
      element('p', { class: 'controls hint', id: `keys-${host.id || 'diagram'}` }, key_words),
      this.selection.status, this.table);
    this.show_runs(section);
    listen(this.frame, this.canvas, this);
    this.minimap.on_drag((share) => {
      this.view.center(share * this.view.total);
      this.view_changed();
    });
    page.on_theme(() => {
      this.rows.set_colours();
      this.minimap.forget();
      this.legend_shown = '';
      this.show_legend();
      this.memory.show_legend(page);
      this.paint();
    });
    new ResizeObserver(() => { this.arrange(); this.paint(); }).observe(this.frame);
  }

  /**
   * Other runs in place of these; the view, the selected op, the modes and the filters stay where
   * they have a meaning: of as many ops as before the same fractions of the time are seen, otherwise
   * the same times.
   * @param {import('./data.js').Section} section
   */
  update(section) {
    const before = this.runs;
    this.runs = runs_of(section);
    this.kinds = new Set(this.runs.flatMap((run) => run.kinds_seen));
    const alike = before.length === this.runs.length &&
      before.every((run, i) => run.spans === this.runs[i].spans);
    this.view.set_total(longest(this.runs), alike);
    this.layout.set_runs(this.runs);
    this.rows.set_runs();
    this.selection.set_runs(this.runs);
    if (!this.kinds.has(this.focus.kind)) this.focus.kind = '';
    if (!this.runs.some((run) => this.focus.stage < run.stages)) this.focus.stage = -1;
    if (!this.runs.some((run) => this.device < run.devices.length)) this.device = -1;
    this.show_runs(section);
    this.tip.hidden = true;
    this.refresh_table();
  }

  /** What depends on the runs and not on the view. @param {import('./data.js').Section} section */
  show_runs(section) {
    this.frame.setAttribute('aria-label', this.summary());
    this.tools.set_runs(this.runs, this.kinds);
    this.tools.show(this.focus);
    this.memory.set_runs(this.runs, section.data.categories);
    if (!this.memory_waits) this.memory.show_legend(this.page);
    this.show_legend();
    this.arrange();
    this.paint();
  }

  summary() {
    const words = this.runs.map((run) => `${shortened(run.title, 60)}: ` +
      `${run.spans} ops on ${run.devices.length} devices in ${time_words(run.makespan)}`);
    return `Space-time diagram. ${words.join('; ')}`;
  }

  arrange() {
    const room = Math.max(260, Math.min(640, innerHeight * 0.6));
    this.layout.arrange(room, this.streams, (device) => this.device < 0 || device === this.device);
    this.height = Math.min(this.layout.height, room) + axis_height;
    this.view.lowest = this.layout.height - this.height + axis_height;
    this.view.scroll_to(this.view.top);
    this.minimap.forget();
  }

  show_legend() {
    /** @type {Set<string>} */
    const causes = new Set();
    if (this.focus.idle) {
      for (const run of this.runs) for (const cause of run.idle_cause) causes.add(run.causes[cause]);
    }
    const shown = [this.focus.idle, ...(this.focus.idle ? causes : this.kinds)].join();
    if (shown === this.legend_shown) return;
    this.legend_shown = shown;
    show_legend(this.legend, this.page, this.kinds, this.focus.idle ? [...causes] : null);
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
    this.view.plot = width - gutter;
    const view = this.rows.paint(this.view, width, this.height, this.focus);
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
    context.save();
    context.beginPath();
    context.rect(gutter, axis_height, width - gutter, this.height - axis_height);
    context.clip();
    draw_marks(canvas_surface(context), this.layout, view, width - gutter, this.selection.op,
      this.focus.path, this.rows.ink);
    context.restore();
    this.minimap.paint(this.view, width, this.view.total);
    if (this.memory_waits) {
      this.memory_waits = false; // until the rows are on the screen
      this.memory_later();
    } else {
      this.memory.paint(view, width, this.page, this.rows.ink);
    }
    const { dataset } = this.frame;
    dataset.fromPs = String(this.view.from);
    dataset.toPs = String(this.view.to);
    dataset.walked = String(this.rows.lines.walked);
    dataset.paintMs = (performance.now() - began).toFixed(2);
  }

  memory_later() {
    requestAnimationFrame(() => {
      this.memory.show_legend(this.page);
      this.paint();
    });
  }

  /** @param {'svg' | 'png'} format */
  save(format) {
    if (format === 'png') {
      download_png(this.memory.host.hidden ? [this.canvas] : [this.canvas, this.memory.canvas],
        this.rows.ink.bg);
      return;
    }
    const text = svg_of_view(this.rows, this.view, this.canvas.clientWidth, this.height, this.focus,
      this.selection.op, this.memory);
    download('stageline.svg', new Blob([text], { type: 'image/svg+xml' }));
  }

  /** @param {Partial<import('./diagram_paint.js').Focus>} change */
  set_focus(change) {
    Object.assign(this.focus, change);
    this.tools.show(this.focus);
    this.show_legend();
    this.paint();
  }

  /** @param {number} device */
  set_device(device) {
    this.device = device;
    this.arrange();
    this.paint();
  }

  /** @param {boolean} streams */
  set_streams(streams) {
    this.streams = streams;
    this.arrange();
    this.paint();
  }

  view_changed() {
    this.refresh_table();
    this.paint();
  }

  // Moves (diagram_input.js). Places are px of the canvas.

  /** Without a place about the middle. @param {number} factor @param {number} [x] */
  zoom(factor, x = gutter + this.view.plot / 2) {
    const changed = this.view.zoom(factor, x - gutter);
    if (changed) this.view_changed();
    return changed;
  }

  show_whole() {
    this.view.show(0, this.view.total);
    this.view_changed();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.view.scroll_to(this.view.top - dy);
    this.view.pan(dx);
    this.view_changed();
  }

  /** The op at a place; null: none. @param {number} x @param {number} y */
  op_at(x, y) {
    return y < axis_height || x < gutter ? null
      : this.layout.op_at(y - axis_height + this.view.top, this.view.time_at(x - gutter));
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    const found = this.op_at(x, y);
    this.canvas.style.cursor = found ? 'pointer' : 'grab';
    if (found) show_op_tip(this.tip, found, x, y + this.canvas.offsetTop, this.frame.clientWidth);
    else this.tip.hidden = true;
  }

  leave() {
    this.tip.hidden = true;
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const found = this.op_at(x, y);
    if (found) this.selection.select(found.run, found.span, false);
    else this.selection.clear();
    this.paint();
  }

  /** @param {Run} run @param {number} span */
  reveal(run, span) {
    if (run.start[span] < this.view.from || run.end[span] > this.view.to) {
      this.view.center((run.start[span] + run.end[span]) / 2);
      this.refresh_table();
    }
    const row = this.layout.row_of(run, run.lane_of(span));
    if (row && (row.y < this.view.top ||
        row.y + row.height > this.view.top + this.height - axis_height)) {
      this.view.scroll_to(row.y - 40);
    }
  }

  /** Of the selected op; without one the rows move. @param {number} step */
  next_lane(step) {
    if (this.selection.op) this.selection.next_lane(step);
    else this.pan(0, -step * 60);
  }

  /** The micro-batch of the selected op, or all again. */
  follow() {
    const { op } = this.selection;
    const none = this.focus.microbatch >= 0 || !op || op.run.counts_updates(op.span);
    this.set_focus({ microbatch: none ? -1 : op.run.microbatch[op.span] });
  }

  end_all() {
    this.selection.clear();
    this.set_focus({ kind: '', stage: -1, microbatch: -1, path: false, idle: false });
  }

  /** Whether the key means something. @param {string} name */
  key(name) {
    const act = key_actions.get(name);
    if (act) act(this);
    return act !== undefined;
  }
}

/** @type {import('./sections.js').SectionKind} */
export const section_diagram = {
  kind: 'diagram',
  render(section, host, page) {
    new Diagram(section, host, page);
  },
};
