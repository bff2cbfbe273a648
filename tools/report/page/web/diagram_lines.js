// The lines of pixels of the tracks, kept while the view moves: what stays in it is shifted, and only
// what comes into it is looked up. A column of pixels does not depend on the view around it, so that
// a shifted line is the one that would be painted anew.
import { paint_line } from './diagram_paint.js';

const least_mark = 4; // px, of a span that has a bar or a label
const least_height = 6; // px, of a line with them

/** `from` and `to` are heights in the rows in px; `last`: of the tracks of its row; `origin`: its first
 * column; `labels`: spans that may have a label, or a bar where they are pale.
 * @typedef {{ row: import('./diagram_layout.js').Row, track: Uint32Array | null, from: number,
 *   to: number, last: boolean, origin: number, labels: number[] }} Line */

export class LaneLines {
  constructor() {
    this.wide = 0;
    this.scale = 0;
    this.step = 0;
    this.focus = '';
    /** @type {import('./diagram_layout.js').Row[]} */
    this.rows = [];
    /** @type {Line[]} from the top */
    this.lines = [];
    this.pixels = new Uint32Array(0);
    this.walked = 0; // spans that the last frame looked up
  }

  forget() {
    this.wide = 0;
  }

  /**
   * @param {import('./diagram_layout.js').Row[]} rows
   * @param {number} wide
   * @param {number} scale px a picosecond
   * @param {number} step of the grid
   * @param {import('./diagram_paint.js').Focus} focus
   */
  begin(rows, wide, scale, step, focus) {
    const now = JSON.stringify(focus);
    this.walked = 0;
    if (this.rows === rows && this.wide === wide && this.scale === scale && this.step === step &&
        this.focus === now) {
      return;
    }
    Object.assign(this, { rows, wide, scale, step, focus: now });
    this.lines = rows.flatMap((row) => row.tracks.map((track, t) => {
      const high = row.height / row.tracks.length;
      return { row, track, from: row.y + t * high, to: row.y + (t + 1) * high,
        last: t + 1 === row.tracks.length, origin: NaN, labels: [] };
    }));
    if (this.pixels.length < this.lines.length * wide) {
      this.pixels = new Uint32Array(this.lines.length * wide);
    }
  }

  /** The pixels of a line. @param {number} number */
  of(number) {
    return this.pixels.subarray(number * this.wide, (number + 1) * this.wide);
  }

  /**
   * Brings one line to the columns from `origin` on.
   * @param {number} number
   * @param {number} origin
   * @param {import('./diagram_paint.js').Look} look
   * @param {import('./diagram_paint.js').Focus} focus
   */
  update(number, origin, look, focus) {
    const line = this.lines[number];
    const { wide } = this;
    const offset = number * wide;
    const shift = origin - line.origin;
    if (shift === 0) return;
    line.origin = origin;
    let [first, until] = [origin, origin + wide];
    if (Math.abs(shift) < wide) {
      if (shift > 0) {
        this.pixels.copyWithin(offset, offset + shift, offset + wide);
        first = until - shift;
      } else {
        this.pixels.copyWithin(offset - shift, offset, offset + wide + shift);
        until = first - shift;
      }
      line.labels = line.labels.filter((span) =>
        line.row.run.start[span] * this.scale < origin + wide && line.row.run.end[span] * this.scale > origin);
    } else {
      line.labels = [];
    }
    const high = line.to - line.from;
    const known = new Set(line.labels);
    this.walked += paint_line(this.pixels, offset - origin, line.row, line.track,
      { scale: this.scale, step: this.step, first, until }, look, focus,
      high < least_height ? null : (span, width) => {
        if (width >= least_mark && !known.has(span)) line.labels.push(span);
      });
  }
}
