// The memory of one device on the time axis of the rows: a stack by category, on a canvas or as SVG.
import { gutter, sized_context } from './diagram_canvas.js';
import { memory_paints } from './palette.js';
import { bytes_words, round_ticks } from './words.js';

export const memory_height = 132; // px
const [plot_top, plot_bottom] = [18, memory_height - 6];

/** @typedef {{ text: string, dim: string, axis: string, row: string, bad: string }} MemoryInk */

/** @param {string} colour */
function pixel_of(colour) {
  const rgb = parseInt(colour.slice(1), 16);
  return (0xff000000 | (rgb & 0xff) << 16 | (rgb & 0xff00) | rgb >> 16) >>> 0;
}

/**
 * The point drawn at each pixel: the highest in it.
 * @param {import('./diagram_curve.js').Curve} curve
 * @param {number} from
 * @param {number} scale px a picosecond
 * @param {number} width px
 */
function highest_points(curve, from, scale, width) {
  const points = new Int32Array(width).fill(-1);
  let at = curve.point_at(from);
  for (let x = 0; x < width; ++x) {
    let best = at;
    const end = from + (x + 1) / scale;
    while (at + 1 < curve.at.length && curve.at[at + 1] < end) {
      ++at;
      if (best < 0 || curve.total[at] > curve.total[best]) best = at;
    }
    points[x] = best;
  }
  return points;
}

/**
 * The axis of bytes, the limit if it is near, and the peak. The reserve is the foot of the stack: it
 * is neither in the run's peaks nor in its limits, so it is added to both.
 * @param {import('./diagram_run.js').Run} run
 * @param {number} device
 * @param {string[]} categories
 */
function scale_of_memory(run, device, categories) {
  const curve = run.curves[device];
  const peak = run.peaks[device];
  const at = categories.indexOf('reserve');
  const reserve = at >= 0 ? curve.bytes[at] ?? 0 : 0;
  const height = peak.bytes + reserve;
  const limit = run.limits[device];
  const near = limit !== null && limit + reserve < 2.5 * height ? limit + reserve : null;
  const most = Math.max(1, height, near ?? 0, curve.most) * 1.04;
  return { curve, near, most, ticks: round_ticks(0, most, 3),
    y_of: (/** @type {number} */ bytes) => plot_bottom - bytes / most * (plot_bottom - plot_top),
    peak: { at: peak.at_ps, bytes: height,
      words: `peak ${bytes_words(peak.bytes)}${peak.op ? ` · ${peak.op}` : ''}` } };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {import('./diagram_run.js').Run} run
 * @param {number} device
 * @param {string[]} categories
 * @param {import('./diagram_canvas.js').View} view
 * @param {number} width
 * @param {import('./theme.js').PageContext} page
 * @param {MemoryInk} ink
 */
export function paint_memory(canvas, run, device, categories, view, width, page, ink) {
  const context = sized_context(canvas, width, memory_height);
  if (!run.curves[device]) return;
  const { curve, near, most, ticks, y_of, peak } = scale_of_memory(run, device, categories);
  const plot = width - gutter;
  const ratio = devicePixelRatio;
  const wide = Math.round(plot * ratio);
  const tall = Math.round((plot_bottom - plot_top) * ratio);
  const image = new ImageData(wide, tall);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(pixel_of(ink.row));
  const colours = categories.map((name) => pixel_of(memory_paints[name][page.theme]));
  const points = highest_points(curve, view.from, wide / view.length, wide);
  for (let x = 0; x < wide; ++x) {
    if (points[x] < 0) continue;
    let sum = 0;
    let y = tall;
    for (let c = 0; c < categories.length; ++c) {
      sum += curve.bytes[points[x] * categories.length + c];
      const until = Math.max(0, Math.round(tall * (1 - sum / most)));
      for (; y > until; --y) pixels[(y - 1) * wide + x] = colours[c];
    }
  }
  context.putImageData(image, Math.round(gutter * ratio), Math.round(plot_top * ratio));
  context.font = '11px system-ui, "Segoe UI", "Liberation Sans", sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (const tick of ticks) {
    context.fillStyle = ink.dim;
    context.fillText(bytes_words(tick, 3), gutter - 8, Math.min(plot_bottom - 4, y_of(tick)));
    context.fillStyle = ink.axis;
    context.fillRect(gutter - 4, Math.round(y_of(tick)), 4, 1);
  }
  if (near !== null) {
    context.strokeStyle = ink.bad;
    context.setLineDash([5, 3]);
    context.beginPath();
    context.moveTo(gutter, y_of(near));
    context.lineTo(width, y_of(near));
    context.stroke();
    context.setLineDash([]);
  }
  const x = gutter + (peak.at - view.from) / view.length * plot;
  if (x < gutter || x > width) return;
  context.fillStyle = ink.text;
  context.beginPath();
  context.arc(x, y_of(peak.bytes), 3.5, 0, 2 * Math.PI);
  context.fill();
  const length = context.measureText(peak.words).width;
  context.textAlign = 'left';
  context.fillText(peak.words, Math.min(width - length - 2, Math.max(gutter, x + 6)), 8);
}

/**
 * The same as shapes of an SVG file: one outline for each category, from the highest to the lowest, so
 * that each covers what is above the next.
 * @param {{ shape(tag: string, attributes: Record<string, any>): void,
 *   text(words: string, x: number, y: number, anchor: string, fill: string): void }} drawing
 * @param {import('./diagram_run.js').Run} run
 * @param {number} device
 * @param {string[]} categories
 * @param {import('./diagram_canvas.js').View} view
 * @param {number} width
 * @param {import('./theme.js').PageContext} page
 * @param {MemoryInk} ink
 */
export function draw_memory(drawing, run, device, categories, view, width, page, ink) {
  if (!run.curves[device]) return;
  const { curve, near, ticks, y_of, peak } = scale_of_memory(run, device, categories);
  const plot = Math.round(width - gutter);
  const points = highest_points(curve, view.from, plot / view.length, plot);
  drawing.shape('rect', { x: gutter, y: plot_top, width: plot, height: plot_bottom - plot_top, fill: ink.row });
  const sums = new Float64Array(plot);
  const outlines = categories.map((name, c) => {
    let path = `M${gutter} ${plot_bottom}`;
    let before = plot_bottom;
    let any = false;
    for (let x = 0; x < plot; ++x) {
      const bytes = points[x] < 0 ? 0 : curve.bytes[points[x] * categories.length + c];
      any ||= bytes > 0;
      sums[x] += bytes;
      const y = Math.round(y_of(sums[x]) * 10) / 10;
      if (y === before) continue;
      path += `H${gutter + x}V${y}`;
      before = y;
    }
    return { d: `${path}H${gutter + plot}V${plot_bottom}Z`, fill: memory_paints[name][page.theme], any,
      'data-category': name };
  });
  for (const { any, ...outline } of outlines.reverse()) if (any) drawing.shape('path', outline);
  for (const tick of ticks) {
    drawing.text(bytes_words(tick, 3), gutter - 8, Math.min(plot_bottom - 4, y_of(tick)), 'end', ink.dim);
  }
  if (near !== null) {
    drawing.shape('path', { d: `M${gutter} ${y_of(near)}H${width}`, stroke: ink.bad, 'stroke-dasharray': '5 3' });
  }
  const x = gutter + (peak.at - view.from) / view.length * plot;
  if (x < gutter || x > width) return;
  drawing.shape('circle', { cx: x, cy: y_of(peak.bytes), r: 3.5, fill: ink.text });
  const left = x < width - 7 * peak.words.length;
  drawing.text(peak.words, left ? x + 6 : width - 2, 8, left ? 'start' : 'end', ink.text);
}
