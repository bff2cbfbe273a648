// The part of the runs that is seen: from a time, for a length, from a height of the rows.
const least_length = 1000; // ps

export class Viewport {
  /** @param {number} total ps */
  constructor(total) {
    this.total = total;
    this.from = 0;
    this.length = total;
    this.top = 0; // px
    this.plot = 1; // px, of the time axis
    this.lowest = 0; // px: the last place of `top`
  }

  get to() {
    return this.from + this.length;
  }

  get whole() {
    return this.length >= this.total;
  }

  /** @param {number} from @param {number} length */
  show(from, length) {
    this.length = Math.min(this.total, Math.max(Math.min(this.total, least_length), length));
    this.from = Math.max(0, Math.min(from, this.total - this.length));
  }

  /**
   * Other runs: the whole stays the whole; otherwise the same times, or the same fractions.
   * @param {number} total
   * @param {boolean} fractions
   */
  set_total(total, fractions) {
    const factor = this.whole || fractions ? total / this.total : 1;
    this.total = total;
    this.show(this.from * factor, this.length * factor);
  }

  /** @param {number} x px from the begin of the axis */
  time_at(x) {
    return this.from + x / this.plot * this.length;
  }

  /** Whether anything changed. @param {number} factor @param {number} x px from the begin of the axis */
  zoom(factor, x) {
    if (factor > 1 && this.whole) return false;
    const time = Math.max(this.from, Math.min(this.to, this.time_at(x)));
    this.show(time - (time - this.from) * factor, this.length * factor);
    return true;
  }

  /** @param {number} dx px */
  pan(dx) {
    this.show(this.from - dx / this.plot * this.length, this.length);
  }

  /** @param {number} time */
  center(time) {
    this.show(time - this.length / 2, this.length);
  }

  /** @param {number} top */
  scroll_to(top) {
    this.top = Math.max(0, Math.min(top, this.lowest));
  }
}
