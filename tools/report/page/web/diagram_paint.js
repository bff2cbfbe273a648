// Draws the rows by pixel: lanes × width steps however many spans there are. A line of pixels is
// made for each track, and copied to the others of its height; where a span has room, its label
// follows on top.
import { first_reaching } from './diagram_layout.js';
import { idle_paints, op_paints, pale_paints, stream_paints, wants_white } from './palette.js';

/**
 * What is drawn in full; the rest is pale.
 * @typedef {{ kind: string, stage: number, microbatch: number, path: boolean, idle: boolean }} Focus
 */

/** The colours of a run, and what pale_stages() says.
 * @typedef {{ colours: Colours, pale: Uint8Array, stages: number }} Look */

/** "#56a8de" as a pixel, little-endian. @param {string} colour */
function pixel(colour) {
  const rgb = parseInt(colour.slice(1), 16);
  return (0xff000000 | (rgb & 0xff) << 16 | (rgb & 0xff00) | rgb >> 16) >>> 0;
}

/** @param {number} one @param {number} other @param {number} share of the other */
function mixed(one, other, share) {
  let result = 0xff000000;
  for (const shift of [0, 8, 16]) {
    const a = one >> shift & 255;
    const b = other >> shift & 255;
    result |= Math.round(a + (b - a) * share) << shift;
  }
  return result >>> 0;
}

/** The colours of one run, as pixels. */
export class Colours {
  /**
   * @param {import('./theme.js').PageContext} page
   * @param {import('./diagram_run.js').Run} run
   */
  constructor(page, run) {
    this.ground = pixel(page.css_colour('bg'));
    this.row = pixel(page.css_colour('row'));
    this.line = pixel(page.css_colour('line'));
    const paint = (/** @type {string} */ kind, /** @type {boolean} */ pale) =>
      (pale ? pale_paints : op_paints)[kind] ?? stream_paints[kind];
    /** By kind, then pale: full and dimmed; and whether the ink is white. */
    this.full = new Uint32Array(run.kinds.length * 2);
    this.dim = new Uint32Array(run.kinds.length * 2);
    this.white = new Uint8Array(run.kinds.length * 2);
    run.kinds.forEach((kind, k) => {
      for (const pale of [0, 1]) {
        const one = paint(kind, pale === 1);
        this.full[2 * k + pale] = pixel(one[page.theme]);
        this.dim[2 * k + pale] = mixed(this.full[2 * k + pale], this.row, 0.8);
        this.white[2 * k + pale] = wants_white(one[page.theme]) ? 1 : 0;
      }
    });
    this.idle = Uint32Array.from(run.causes.map((cause) => pixel(idle_paints[cause][page.theme])));
  }
}

/**
 * By device and stage, 1 for every other stage of the device.
 * @param {import('./diagram_run.js').Run} run
 */
export function pale_stages(run) {
  const { stages } = run;
  const pale = new Uint8Array(run.devices.length * stages);
  for (let device = 0; device < run.devices.length; ++device) {
    const here = new Uint8Array(stages);
    for (let i = run.lane_begin[device * 5]; i < run.lane_begin[device * 5 + 1]; ++i) {
      here[run.stage[i]] = 1;
    }
    let count = 0;
    here.forEach((one, stage) => {
      if (one) pale[device * stages + stage] = count++ % 2;
    });
  }
  return { pale, stages };
}

/**
 * The bar on a pale box, which tells it apart in a grey print; as bars() of svg_marks.hpp has it. In
 * the units of the box.
 * @param {number} x @param {number} y @param {number} width @param {number} height
 */
export function bar_on(x, y, width, height) {
  const side = width > 6 ? 1.5 : 0;
  return { x: x + side, y: y + 0.09 * height, width: width - 2 * side,
    height: Math.min(2, Math.max(0.7, 0.08 * height)) };
}

/**
 * Whether a span is drawn in full.
 * @param {Focus} focus
 * @param {import('./diagram_run.js').Run} run
 * @param {number} span
 */
export function in_focus(focus, run, span) {
  return !focus.idle && (!focus.path || run.on_path[span] === 1) &&
    (focus.stage < 0 || run.stage[span] === focus.stage) &&
    (focus.kind === '' || run.kinds[run.kind[span]] === focus.kind) &&
    (focus.microbatch < 0 ||
      (run.microbatch[span] === focus.microbatch && !run.counts_updates(span)));
}

/** @param {Focus} focus */
export function has_focus(focus) {
  return focus.idle || focus.path || focus.stage >= 0 || focus.kind !== '' || focus.microbatch >= 0;
}

/** The column of pixels where a time is. @param {number} time @param {number} scale px a picosecond */
export const column_of = (time, scale) => Math.floor(time * scale + 0.5);

/**
 * Calls visit(begin, end, span, from, to) for the columns `first` to `until` of a track, from left to
 * right: the span covers `from` to `to`, of which `begin` to `end` show it. What is narrower than a
 * column has its first one; the first such span of a column stands for the others. What a column
 * shows is the same wherever the walk begins. Returns the number of spans looked at.
 * @param {import('./diagram_layout.js').Row} row
 * @param {Uint32Array | null} track
 * @param {number} scale px a picosecond
 * @param {number} first
 * @param {number} until
 * @param {(begin: number, end: number, span: number, from: number, to: number) => void} visit
 */
export function walk(row, track, scale, first, until, visit) {
  const { run, lane } = row;
  const last = track ? track.length : run.lane_begin[lane + 1];
  let at = first_reaching(row, track, scale, 0.5, first, 0);
  let free = first;
  let count = 0;
  while (at < last && free < until) {
    ++count;
    const span = track ? track[at] : at;
    const from = column_of(run.start[span], scale);
    if (from >= until) break;
    const to = column_of(run.end[span], scale);
    const begin = Math.max(from, free);
    if (to > from) {
      const end = Math.min(to, until);
      if (end > begin) visit(begin, end, span, from, to);
      free = Math.max(free, end);
      ++at;
    } else {
      if (from >= free) visit(from, from + 1, span, from, from + 1);
      free = Math.max(free, from + 1);
      at = first_reaching(row, track, scale, 0.5, from + 1, at + 1);
    }
  }
  return count;
}

/**
 * Paints the columns `first` to `until` of one line of pixels: spans over idle time over grid lines.
 * Returns the number of spans looked at.
 * @param {Uint32Array} line
 * @param {number} zero where column 0 would be
 * @param {import('./diagram_layout.js').Row} row
 * @param {Uint32Array | null} track
 * @param {{ scale: number, step: number, first: number, until: number }} view with the step of the
 *   grid in picoseconds; 0: no grid
 * @param {Look} look
 * @param {Focus} focus
 * @param {((span: number, width: number) => void) | null} labelled for spans that may have a label
 */
export function paint_line(line, zero, row, track, view, look, focus, labelled) {
  const { run } = row;
  const { colours, pale, stages } = look;
  const { scale, step, first, until } = view;
  line.fill(colours.row, zero + first, zero + until);
  if (step > 0) {
    for (let n = Math.ceil((first - 1) / scale / step); ; ++n) {
      const x = column_of(n * step, scale);
      if (x >= until) break;
      if (x >= first) line[zero + x] = colours.line;
    }
  }
  if (focus.idle && row.stream === 0) paint_idle(line, zero, row, view, colours);
  const focused = has_focus(focus);
  return walk(row, track, scale, first, until, (begin, end, span, from, to) => {
    const look_at = 2 * run.kind[span] +
      (row.stream === 0 ? pale[row.device * stages + run.stage[span]] : 0);
    const full = !focused || in_focus(focus, run, span);
    const colour = full ? colours.full[look_at] : colours.dim[look_at];
    for (let x = begin; x < end; ++x) line[zero + x] = colour;
    if (to - from < 3) return;
    if (begin === from) line[zero + from] = colours.ground;
    if (labelled && full) labelled(span, to - from);
  });
}

/**
 * @param {Uint32Array} line
 * @param {number} zero
 * @param {import('./diagram_layout.js').Row} row
 * @param {{ scale: number, first: number, until: number }} view
 * @param {Colours} colours
 */
function paint_idle(line, zero, row, view, colours) {
  const { run, device } = row;
  const { scale, first, until } = view;
  const end = run.idle_begin[device + 1];
  let low = run.idle_begin[device];
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column_of(run.idle_end[middle], scale) <= first) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < end; ++i) {
    const from = Math.max(first, column_of(run.idle_start[i], scale));
    if (from >= until) return;
    const to = Math.min(until, column_of(run.idle_end[i], scale));
    if (to > from) line.fill(colours.idle[run.idle_cause[i]], zero + from, zero + to);
  }
}
