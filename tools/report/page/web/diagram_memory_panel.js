// The memory below the rows: which device, its curve, and what the colours are.
import { chooser, show_memory_legend } from './diagram_controls.js';
import { draw_memory, memory_height, paint_memory } from './diagram_memory.js';
import { longest_list, set_options } from './diagram_toolbar.js';
import { element } from './dom.js';
import { shortened } from './words.js';

export class MemoryPanel {
  /** @param {() => void} changed */
  constructor(changed) {
    /** @type {import('./diagram_run.js').Run[]} */
    this.runs = [];
    /** @type {string[]} */
    this.categories = [];
    this.chosen = ''; // by the reader: "run,device"
    this.canvas = /** @type {HTMLCanvasElement} */ (element('canvas', {}));
    this.canvas.style.height = `${memory_height}px`; // before it is painted
    this.legend = element('div', { class: 'legend' });
    this.note = element('span', {});
    this.chooser = chooser('memory of', [], (value) => {
      this.chosen = value;
      changed();
    });
    this.host = element('div', { class: 'memory' },
      element('p', { class: 'memory-of' }, this.chooser.label, this.note), this.canvas, this.legend);
  }

  /** @param {import('./diagram_run.js').Run[]} runs @param {string[]} categories */
  set_runs(runs, categories) {
    this.runs = runs;
    this.categories = categories;
    this.host.hidden = !runs.some((run) => run.has_curves);
    if (this.host.hidden) return;
    /** @type {[string, string][]} */
    const options = [];
    runs.forEach((run, r) => run.devices.slice(0, longest_list).forEach((_, device) => {
      const name = shortened(run.devices[device], 30);
      options.push([`${r},${device}`, runs.length > 1 ? `${shortened(run.title, 30)} · ${name}` : name]);
    }));
    set_options(this.chooser.select, options);
    const kept = options.some(([value]) => value === this.chosen);
    this.chooser.select.value = kept ? this.chosen : this.fullest();
    this.note.textContent = runs.some((run) => !run.exact_curves)
      ? ' the highest of each of many equal intervals is drawn' : '';
  }

  /** The run and device with the least room left, or the most bytes. */
  fullest() {
    let best = { of: '0,0', share: -1 };
    this.runs.forEach((run, r) => run.peaks.forEach((peak, device) => {
      const share = peak.bytes / (run.limits[device] ?? 1e30);
      if (share > best.share) best = { of: `${r},${device}`, share };
    }));
    return best.of;
  }

  /** The run and the device whose curve is drawn. */
  get place() {
    const [run, device] = this.chooser.select.value.split(',').map(Number);
    return { run: this.runs[run], device };
  }

  /** @param {import('./theme.js').PageContext} page */
  show_legend(page) {
    if (this.host.hidden) return;
    const { run } = this.place;
    const count = this.categories.length;
    show_memory_legend(this.legend, page, this.categories.filter((_, c) => run.curves.some((curve) => {
      for (let i = c; i < curve.bytes.length; i += count) if (curve.bytes[i] > 0) return true;
      return false;
    })));
  }

  /**
   * @param {import('./diagram_canvas.js').View} view
   * @param {number} width
   * @param {import('./theme.js').PageContext} page
   * @param {import('./diagram_memory.js').MemoryInk} ink
   */
  paint(view, width, page, ink) {
    if (this.host.hidden) return;
    const { run, device } = this.place;
    paint_memory(this.canvas, run, device, this.categories, view, width, page, ink);
  }

  /** The height of draw(). */
  get height() {
    return this.host.hidden ? 0 : memory_height;
  }

  /**
   * @param {Parameters<typeof draw_memory>[0]} drawing
   * @param {import('./diagram_canvas.js').View} view
   * @param {number} width
   * @param {import('./theme.js').PageContext} page
   * @param {import('./diagram_memory.js').MemoryInk} ink
   */
  draw(drawing, view, width, page, ink) {
    if (this.host.hidden) return;
    const { run, device } = this.place;
    drawing.text(`memory of ${shortened(run.devices[device], 40)}`, 2, 8, 'start', ink.dim);
    draw_memory(drawing, run, device, this.categories, view, width, page, ink);
  }
}
