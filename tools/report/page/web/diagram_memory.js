// The memory of one device below the rows, on their time axis: a stack by category.
import { gutter, sized_context } from './diagram_canvas.js';
import { memory_paints } from './palette.js';
import { bytes_words, round_ticks } from './words.js';

export const memory_height = 132; // px

/** @param {string} colour */
function pixel_of(colour) {
  const rgb = parseInt(colour.slice(1), 16);
  return (0xff000000 | (rgb & 0xff) << 16 | (rgb & 0xff00) | rgb >> 16) >>> 0;
}

/**
 * The point drawn at each pixel: the highest in it.
 * @param {import('./diagram_run.js').Curve} curve
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
 * @param {HTMLCanvasElement} canvas
 * @param {import('./diagram_run.js').Run} run
 * @param {number} device
 * @param {string[]} categories
 * @param {import('./diagram_canvas.js').View} view
 * @param {number} width
 * @param {import('./theme.js').PageContext} page
 */
export function paint_memory(canvas, run, device, categories, view, width, page) {
  const context = sized_context(canvas, width, memory_height);
  const curve = run.curves[device];
  if (!curve) return;
  const peak = run.peaks[device];
  const limit = run.limits[device];
  const plot = width - gutter;
  const [top, bottom] = [18, memory_height - 6];
  const near = limit !== null && limit < 2.5 * peak.bytes;
  const most = Math.max(1, ...[peak.bytes, near ? limit : 0, maximum(curve.total)]) * 1.04;
  const y_of = (/** @type {number} */ bytes) => bottom - bytes / most * (bottom - top);
  const ratio = devicePixelRatio;
  const wide = Math.round(plot * ratio);
  const tall = Math.round((bottom - top) * ratio);
  const scale = wide / (view.to - view.from);
  const image = new ImageData(wide, tall);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(pixel_of(page.css_colour('row')));
  const colours = categories.map((name) => pixel_of(memory_paints[name][page.theme]));
  const points = highest_points(curve, view.from, scale, wide);
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
  context.putImageData(image, Math.round(gutter * ratio), Math.round(top * ratio));
  context.font = '11px system-ui, "Segoe UI", "Liberation Sans", sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (const tick of round_ticks(0, most, 3)) {
    context.fillStyle = page.css_colour('dim');
    context.fillText(bytes_words(tick, 3), gutter - 8, Math.min(bottom - 4, y_of(tick)));
    context.fillStyle = page.css_colour('axis');
    context.fillRect(gutter - 4, Math.round(y_of(tick)), 4, 1);
  }
  if (near && limit !== null) {
    context.strokeStyle = page.css_colour('bad');
    context.setLineDash([5, 3]);
    context.beginPath();
    context.moveTo(gutter, y_of(limit));
    context.lineTo(width, y_of(limit));
    context.stroke();
    context.setLineDash([]);
  }
  const x = gutter + (peak.at_ps - view.from) / (view.to - view.from) * plot;
  if (x < gutter || x > width) return;
  const reserve = categories.indexOf('reserve');
  const y = y_of(peak.bytes + (reserve >= 0 ? curve.bytes[reserve] ?? 0 : 0));
  context.fillStyle = page.css_colour('text');
  context.beginPath();
  context.arc(x, y, 3.5, 0, 2 * Math.PI);
  context.fill();
  const words = `peak ${bytes_words(peak.bytes)}${peak.op ? ` · ${peak.op}` : ''}`;
  const length = context.measureText(words).width;
  context.textAlign = 'left';
  context.fillText(words, Math.min(width - length - 2, Math.max(gutter, x + 6)), 8);
}

/** @param {Float64Array} values */
function maximum(values) {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}
