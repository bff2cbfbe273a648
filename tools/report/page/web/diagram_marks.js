// What is drawn over the rows: the selected op with its needs and readers, and the critical path.
import { axis_height, gutter } from './diagram_canvas.js';

const most_arrows = 200;
const most_pieces = 4000;

/** A drawing surface: a canvas, or the SVG of an export.
 * @typedef {{ path(points: [number, number][], colour: string, width: number): void,
 *   box(x: number, y: number, width: number, height: number, colour: string): void,
 *   head(x: number, y: number, colour: string): void }} Surface */

/** @param {CanvasRenderingContext2D} context @returns {Surface} */
export function canvas_surface(context) {
  return {
    path(points, colour, width) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.stroke();
    },
    box(x, y, width, height, colour) {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(x, y, width, height);
    },
    head(x, y, colour) {
      context.fillStyle = colour;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x - 7, y - 4);
      context.lineTo(x - 7, y + 4);
      context.fill();
    },
  };
}

/**
 * @param {Surface} surface
 * @param {import('./diagram_layout.js').Layout} layout
 * @param {import('./diagram_canvas.js').View} view
 * @param {number} plot px
 */
export function placer(surface, layout, view, plot) {
  const x_of = (/** @type {number} */ time) => Math.max(-1e4, Math.min(1e5,
    gutter + (time - view.from) / (view.to - view.from) * plot));
  const box_of = (/** @type {import('./diagram_run.js').Run} */ run, /** @type {number} */ span) => {
    const row = layout.row_of(run, run.lane_of(span));
    if (!row) return null;
    const { y, height } = layout.box(row, span);
    const top = y - view.top + axis_height;
    const left = x_of(run.start[span]);
    return { left, right: Math.max(left + 2, x_of(run.end[span])), top, height,
      middle: top + height / 2 };
  };
  return {
    /** @param {import('./diagram_run.js').Run} run @param {number} span @param {string} colour */
    frame(run, span, colour) {
      const box = box_of(run, span);
      if (box) surface.box(box.left, box.top + 1, box.right - box.left, box.height - 2, colour);
    },
    /** From the end of one span to the start of another.
     * @param {import('./diagram_run.js').Run} run @param {number} from @param {number} to
     * @param {string} colour */
    arrow(run, from, to, colour) {
      const [a, b] = [box_of(run, from), box_of(run, to)];
      if (!a || !b) return;
      surface.path([[a.right, a.middle], [b.left, b.middle]], colour, 1.5);
      surface.head(b.left, b.middle, colour);
    },
    /** @param {import('./diagram_run.js').Run} run @param {string} colour */
    critical_path(run, colour) {
      /** @type {[number, number][]} */
      const points = [];
      for (let i = 0; i < run.path_end.length && points.length < most_pieces; ++i) {
        if (run.path_kind[i] !== 0 || run.path_end[i] < view.from) continue;
        const box = box_of(run, run.path_span[i]);
        if (!box) continue;
        // Below the label.
        const y = box.top + box.height - Math.min(4, box.height / 2);
        points.push([box.left, y], [box.right, y]);
        if (run.path_end[i] > view.to) break;
      }
      if (points.length > 0 && points.length < most_pieces) surface.path(points, colour, 1.5);
    },
  };
}

/**
 * @param {Surface} surface
 * @param {import('./diagram_layout.js').Layout} layout
 * @param {import('./diagram_canvas.js').View} view
 * @param {number} plot
 * @param {{ run: import('./diagram_run.js').Run, span: number } | null} selected
 * @param {boolean} path
 * @param {{ text: string, accent: string, dim: string }} ink
 */
export function draw_marks(surface, layout, view, plot, selected, path, ink) {
  const place = placer(surface, layout, view, plot);
  if (path) for (const run of layout.runs) place.critical_path(run, ink.text);
  if (!selected) return;
  const { run, span } = selected;
  for (const need of run.needs(span).subarray(0, most_arrows)) {
    place.frame(run, need, ink.accent);
    place.arrow(run, need, span, ink.accent);
  }
  for (const reader of run.readers(span).subarray(0, most_arrows)) {
    place.frame(run, reader, ink.dim);
    place.arrow(run, span, reader, ink.dim);
  }
  place.frame(run, span, ink.text);
}
