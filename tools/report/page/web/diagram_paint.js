// Draws the rows by pixel: lanes × width steps however many spans there are. A line of pixels is
// made for each track, and copied to the others of its height; where a span has room, its label
// follows on top.
import { first_after } from './diagram_layout.js';
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
  let stages = 0;
  for (let i = 0; i < run.spans; ++i) if (run.stage[i] >= stages) stages = run.stage[i] + 1;
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

/**
 * Calls visit(begin, end, span) for the pixels of a track from left to right. Of what is narrower
 * than a pixel, the first span that ends in it or after stands for the others.
 * @param {import('./diagram_layout.js').Row} row
 * @param {Uint32Array | null} track
 * @param {number} from
 * @param {number} scale px a picosecond
 * @param {number} width px
 * @param {(begin: number, end: number, span: number) => void} visit
 */
export function walk(row, track, from, scale, width, visit) {
  const { run, lane } = row;
  const last = track ? track.length : run.lane_begin[lane + 1];
  const to = from + width / scale;
  let at = first_after(row, track, from, 0);
  let free = 0;
  while (at < last && free < width) {
    const span = track ? track[at] : at;
    const start = run.start[span];
    if (start >= to) return;
    const begin = Math.max(free, Math.round((start - from) * scale));
    const end = Math.min(width, Math.round((run.end[span] - from) * scale));
    if (end > begin) {
      visit(begin, end, span);
      free = end;
      ++at;
      continue;
    }
    if (begin >= width) return;
    visit(begin, begin + 1, span);
    free = begin + 1;
    at = first_after(row, track, from + free / scale, at + 1);
  }
}

/**
 * Paints one line of pixels: spans over idle time over grid lines.
 * @param {Uint32Array} line
 * @param {number} offset
 * @param {import('./diagram_layout.js').Row} row
 * @param {Uint32Array | null} track
 * @param {{ from: number, scale: number, width: number, grid: number[] }} view in pixels
 * @param {Look} look
 * @param {Focus} focus
 * @param {((begin: number, end: number, span: number, white: boolean) => void) | null} wide for
 *   spans with room for a label
 */
export function paint_line(line, offset, row, track, view, look, focus, wide) {
  const { run } = row;
  const { colours, pale, stages } = look;
  line.fill(colours.row, offset, offset + view.width);
  for (const x of view.grid) line[offset + x] = colours.line;
  if (focus.idle && row.stream === 0) paint_idle(line, offset, row, view, colours);
  const focused = has_focus(focus);
  walk(row, track, view.from, view.scale, view.width, (begin, end, span) => {
    const look_at = 2 * run.kind[span] +
      (row.stream === 0 ? pale[row.device * stages + run.stage[span]] : 0);
    const full = !focused || in_focus(focus, run, span);
    const colour = full ? colours.full[look_at] : colours.dim[look_at];
    for (let x = begin; x < end; ++x) line[offset + x] = colour;
    if (end - begin < 3) return;
    line[offset + begin] = colours.ground;
    if (wide && full && end - begin >= 12) wide(begin, end, span, colours.white[look_at] === 1);
  });
}

/**
 * @param {Uint32Array} line
 * @param {number} offset
 * @param {import('./diagram_layout.js').Row} row
 * @param {{ from: number, scale: number, width: number }} view
 * @param {Colours} colours
 */
function paint_idle(line, offset, row, view, colours) {
  const { run, device } = row;
  const end = run.idle_begin[device + 1];
  const to = view.from + view.width / view.scale;
  let low = run.idle_begin[device];
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (run.idle_end[middle] <= view.from) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < end && run.idle_start[i] < to; ++i) {
    const first = Math.max(0, Math.round((run.idle_start[i] - view.from) * view.scale));
    const last = Math.min(view.width, Math.round((run.idle_end[i] - view.from) * view.scale));
    line.fill(colours.idle[run.idle_cause[i]], offset + first, offset + Math.max(first, last));
  }
}
