// The canvas of the rows: axis, names, pixels, labels, and what is selected.
import { Colours, paint_line, pale_stages } from './diagram_paint.js';
import { round_ticks, shortened, time_words } from './words.js';

export const gutter = 132; // px, for names
export const axis_height = 24;
const font = '11px system-ui, "Segoe UI", "Liberation Sans", sans-serif';
const bold = '600 12px system-ui, "Segoe UI", "Liberation Sans", sans-serif';

/** @typedef {{ from: number, to: number, top: number }} View */

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
    this.pales = new Map(layout.runs.map((run) => [run, pale_stages(run)]));
    this.image = new ImageData(1, 1);
    this.looks = this.look_of_runs();
    this.ink = this.inks();
    this.ticks = /** @type {number[]} */ ([]);
  }

  set_colours() {
    this.looks = this.look_of_runs();
    this.ink = this.inks();
  }

  /** @returns {Map<import('./diagram_run.js').Run, import('./diagram_paint.js').Look>} */
  look_of_runs() {
    return new Map(this.layout.runs.map((run) => [run,
      { colours: new Colours(this.page, run), .../** @type {any} */ (this.pales.get(run)) }]));
  }

  inks() {
    return { text: this.page.css_colour('text'), dim: this.page.css_colour('dim'),
      line: this.page.css_colour('line'), axis: this.page.css_colour('axis'),
      accent: this.page.css_colour('accent'), bg: this.page.css_colour('bg'),
      bad: this.page.css_colour('bad') };
  }

  /**
   * @param {View} view
   * @param {number} width of the canvas
   * @param {number} height
   * @param {import('./diagram_paint.js').Focus} focus
   */
  paint(view, width, height, focus) {
    const context = sized_context(this.canvas, width, height);
    const plot = width - gutter;
    this.paint_axis(context, view, plot);
    this.paint_pixels(context, view, plot, height, focus);
    this.paint_names(context, view, height);
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view @param {number} plot */
  paint_axis(context, view, plot) {
    context.font = font;
    context.fillStyle = this.ink.dim;
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    this.ticks = round_ticks(view.from, view.to, plot / 110);
    const span = view.to - view.from;
    for (const tick of this.ticks) {
      const x = gutter + (tick - view.from) / span * plot;
      const words = tick_words(tick, view);
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
   * @param {number} plot
   * @param {number} height
   * @param {import('./diagram_paint.js').Focus} focus
   */
  paint_pixels(context, view, plot, height, focus) {
    const ratio = devicePixelRatio;
    const wide = Math.round(plot * ratio);
    const tall = Math.round((height - axis_height) * ratio);
    if (wide <= 0 || tall <= 0) return;
    if (this.image.width !== wide || this.image.height !== tall) {
      this.image = new ImageData(wide, tall);
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(/** @type {any} */ (this.looks.values().next().value).colours.ground);
    const scale = wide / (view.to - view.from);
    const grid = this.ticks.map((tick) => Math.round((tick - view.from) * scale))
      .filter((x) => x >= 0 && x < wide);
    const in_pixels = { from: view.from, scale, width: wide, grid };
    /** @type {{ x: number, width: number, y: number, text: string, short: string, white: boolean }[]} */
    const labels = [];
    for (const row of this.layout.rows) {
      const look = /** @type {import('./diagram_paint.js').Look} */ (this.looks.get(row.run));
      const high = row.height / row.tracks.length;
      row.tracks.forEach((track, t) => {
        const y0 = Math.max(0, Math.round((row.y + t * high - view.top) * ratio));
        const y1 = Math.min(tall, Math.round((row.y + (t + 1) * high - view.top) * ratio) -
          (t + 1 === row.tracks.length ? 1 : 0));
        if (y1 <= y0) return;
        const middle = (row.y + (t + 0.5) * high) - view.top + axis_height;
        paint_line(pixels, y0 * wide, row, track, in_pixels, look, focus, high < 13 ? null
          : (begin, end, span, white) => {
            labels.push({ x: (begin + end) / 2 / ratio + gutter, width: (end - begin) / ratio - 4,
              y: middle, text: row.run.op(span), short: String(row.run.microbatch[span]), white });
          });
        for (let y = y0 + 1; y < y1; ++y) {
          pixels.copyWithin(y * wide, y0 * wide, y0 * wide + wide);
        }
      });
    }
    context.putImageData(this.image, Math.round(gutter * ratio), Math.round(axis_height * ratio));
    context.save();
    context.beginPath();
    context.rect(gutter, axis_height, plot, height - axis_height);
    context.clip();
    context.textAlign = 'center';
    context.font = font;
    for (const white of [false, true]) {
      context.fillStyle = white ? '#ffffff' : '#14171c';
      for (const label of labels) {
        if (label.white !== white) continue;
        // Digits and capitals are narrower than 7 px.
        const text = label.text.length * 7 <= label.width ? label.text : label.short;
        if (text.length * 6.2 <= label.width) context.fillText(text, label.x, label.y);
      }
    }
    context.restore();
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
