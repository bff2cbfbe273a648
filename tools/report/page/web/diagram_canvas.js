// The canvas of the rows: axis, names, pixels, labels, and what is selected.
import { LaneLines } from './diagram_lines.js';
import { bar_on, Colours, column_of, pale_stages } from './diagram_paint.js';
import { round_step, shortened, time_words } from './words.js';

export const gutter = 132; // px, for names
export const axis_height = 24;
const font = '11px system-ui, "Segoe UI", "Liberation Sans", sans-serif';
const bold = '600 12px system-ui, "Segoe UI", "Liberation Sans", sans-serif';

/** @typedef {{ from: number, to: number, length: number, top: number }} View */

/** Sets the size of a canvas and clears it. @param {HTMLCanvasElement} canvas
 *  @param {number} width @param {number} height */
export function sized_context(canvas, width, height) {
  const ratio = devicePixelRatio;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

export class RowsCanvas {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import('./diagram_layout.js').Layout} layout
   * @param {import('./theme.js').PageContext} page
   */
  constructor(canvas, layout, page) {
    this.canvas = canvas;
    this.layout = layout;
    this.page = page;
    this.image = new ImageData(1, 1);
    this.lines = new LaneLines();
    this.pales = this.pale_stages_of_runs();
    this.looks = this.look_of_runs();
    this.ink = this.inks();
  }

  /** The layout has other runs. */
  set_runs() {
    this.pales = this.pale_stages_of_runs();
    this.set_colours();
  }

  set_colours() {
    this.looks = this.look_of_runs();
    this.ink = this.inks();
    this.lines.forget();
  }

  pale_stages_of_runs() {
    return new Map(this.layout.runs.map((run) => [run, pale_stages(run)]));
  }

  /** @returns {Map<import('./diagram_run.js').Run, import('./diagram_paint.js').Look>} */
  look_of_runs() {
    return new Map(this.layout.runs.map((run) => [run,
      { colours: new Colours(this.page, run), ... /** @type {any} */ (this.pales.get(run)) }]));
  }

  inks() {
    return { text: this.page.css_colour('text'), dim: this.page.css_colour('dim'),
      line: this.page.css_colour('line'), axis: this.page.css_colour('axis'),
      accent: this.page.css_colour('accent'), bg: this.page.css_colour('bg'),
      bad: this.page.css_colour('bad'), row: this.page.css_colour('row') };
  }

  /**
   * Returns the view that is drawn: the one wanted, from the next whole pixel.
   * @param {View} wanted
   * @param {number} width of the canvas
   * @param {number} height
   * @param {import('./diagram_paint.js').Focus} focus
   * @returns {View}
   */
  paint(wanted, width, height, focus) {
    const context = sized_context(this.canvas, width, height);
    const plot = width - gutter;
    const wide = Math.round(plot * devicePixelRatio);
    const scale = wide / wanted.length;
    const origin = Math.round(wanted.from * scale);
    const view = { from: origin / scale, to: (origin + wide) / scale, length: wanted.length, top: wanted.top };
    const step = round_step(wanted.length, plot / 110);
    this.paint_axis(context, view, plot, step);
    this.lines.begin(this.layout.rows, wide, scale, step, focus);
    this.paint_pixels(context, view, origin, plot, height, focus);
    this.paint_names(context, view, height);
    return view;
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view @param {number} plot
   *  @param {number} step */
  paint_axis(context, view, plot, step) {
    context.font = font;
    context.fillStyle = this.ink.dim;
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    for (let n = Math.ceil(view.from / step); n * step <= view.to; ++n) {
      const x = gutter + (n * step - view.from) / view.length * plot;
      const words = tick_words(n * step, view);
      const half = context.measureText(words).width / 2;
      context.fillText(words, Math.min(gutter + plot - half, Math.max(gutter + half, x)),
        axis_height / 2 - 1);
      context.fillStyle = this.ink.axis;
      context.fillRect(Math.round(x), axis_height - 5, 1, 5);
      context.fillStyle = this.ink.dim;
    }
    context.fillStyle = this.ink.line;
    context.fillRect(gutter, axis_height - 1, plot, 1);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {View} view
   * @param {number} origin the first column
   * @param {number} plot
   * @param {number} height
   * @param {import('./diagram_paint.js').Focus} focus
   */
  paint_pixels(context, view, origin, plot, height, focus) {
    const ratio = devicePixelRatio;
    const { wide } = this.lines;
    const tall = Math.round((height - axis_height) * ratio);
    if (wide <= 0 || tall <= 0) return;
    if (this.image.width !== wide || this.image.height !== tall) {
      this.image = new ImageData(wide, tall);
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(/** @type {any} */ (this.looks.values().next().value).colours.ground);
    /** @type {[import('./diagram_lines.js').Line, number][]} with the middle */
    const labelled = [];
    this.lines.lines.forEach((line, number) => {
      const y0 = Math.max(0, Math.round((line.from - view.top) * ratio));
      const y1 = Math.min(tall, Math.round((line.to - view.top) * ratio) - (line.last ? 1 : 0));
      if (y1 <= y0) return;
      const look = /** @type {import('./diagram_paint.js').Look} */ (this.looks.get(line.row.run));
      this.lines.update(number, origin, look, focus);
      pixels.set(this.lines.of(number), y0 * wide);
      for (let y = y0 + 1; y < y1; ++y) {
        pixels.copyWithin(y * wide, y0 * wide, y0 * wide + wide);
      }
      if (line.labels.length > 0) labelled.push([line, (line.from + line.to) / 2 - view.top + axis_height]);
    });
    context.putImageData(this.image, Math.round(gutter * ratio), Math.round(axis_height * ratio));
    context.save();
    context.beginPath();
    context.rect(gutter, axis_height, plot, height - axis_height);
    context.clip();
    context.textAlign = 'center';
    context.font = font;
    for (const [line, middle] of labelled) this.paint_labels(context, line, middle, origin);
    context.restore();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import('./diagram_lines.js').Line} line
   * @param {number} middle
   * @param {number} origin
   */
  paint_labels(context, line, middle, origin) {
    const ratio = devicePixelRatio;
    const { run } = line.row;
    const { colours, pale, stages } = /** @type {import('./diagram_paint.js').Look} */ (this.looks.get(run));
    const { scale, wide } = this.lines;
    for (const span of line.labels) {
      const begin = Math.max(0, column_of(run.start[span], scale) - origin);
      const end = Math.min(wide, column_of(run.end[span], scale) - origin);
      const at = 2 * run.kind[span] +
        (line.row.stream === 0 ? pale[line.row.device * stages + run.stage[span]] : 0);
      context.fillStyle = colours.white[at] ? '#ffffff' : '#14171c';
      const high = line.to - line.from;
      if (at % 2 === 1) {
        const bar = bar_on(begin / ratio + gutter, middle - high / 2, (end - begin) / ratio, high);
        context.fillRect(bar.x, bar.y, bar.width, bar.height);
      }
      const width = (end - begin) / ratio - 4;
      if (width < 8 || high < 13) continue;
      const op = run.op(span);
      // Digits and capitals are narrower than 7 px.
      const text = op.length * 7 <= width ? op : String(run.microbatch[span]);
      if (text.length * 6.2 > width) continue;
      context.fillText(text, (begin + end) / 2 / ratio + gutter, middle);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view @param {number} height */
  paint_names(context, view, height) {
    context.save();
    context.beginPath();
    context.rect(0, axis_height, 4000, height - axis_height);
    context.clip();
    context.textBaseline = 'middle';
    let free = -100;
    for (const row of this.layout.rows) {
      const y = row.y - view.top + axis_height + row.height / 2;
      if (row.stream > 0 || y < free + 13 || y < axis_height - 20 || y > height + 20) {
        if (row.stream === 0 || row.height < 12) continue;
      }
      context.textAlign = 'right';
      context.font = font;
      context.fillStyle = row.stream === 0 ? this.ink.text : this.ink.dim;
      const name = row.stream === 0 ? row.run.devices[row.device]
        : row.run.lane_names[row.stream].replace('_', ' ');
      context.fillText(shortened(name, 18), gutter - 8, y, gutter - 12);
      free = y;
    }
    for (const heading of this.layout.headings) {
      const y = heading.y - view.top + axis_height + heading.height / 2 + 2;
      context.textAlign = 'left';
      context.font = bold;
      context.fillStyle = this.ink.text;
      const title = shortened(heading.run.title, 48);
      context.fillText(title, 2, y);
      const used = context.measureText(title).width;
      context.font = font;
      context.fillStyle = this.ink.dim;
      context.fillText(shortened(heading.run.subtitle, 120), used + 12, y);
    }
    context.restore();
  }
}

/** Enough digits that neighbours differ. @param {number} tick @param {View} view */
function tick_words(tick, view) {
  const digits = Math.ceil(Math.log10(Math.max(1, Math.abs(tick)) / (view.to - view.from))) + 3;
  return time_words(tick, Math.max(3, Math.min(15, digits)));
}
