// The op that is selected, what is said of it, and the way from it to others.
import { show_details } from './diagram_details.js';
import { first_after } from './diagram_layout.js';
import { element } from './dom.js';
import { time_words } from './words.js';

/** @typedef {import('./diagram_run.js').Run} Run */

export class Selection {
  /**
   * @param {import('./diagram_layout.js').Layout} layout
   * @param {(run: Run, span: number, reveal: boolean) => void} changed
   */
  constructor(layout, changed) {
    this.layout = layout;
    this.changed = changed;
    /** @type {{ run: Run, span: number } | null} */
    this.op = null;
    this.details = element('aside', { class: 'details', 'aria-label': 'the selected op' });
    this.status = element('p', { class: 'unseen', 'aria-live': 'polite' });
    this.clear();
  }

  clear() {
    this.op = null;
    delete this.details.dataset.op;
    this.details.replaceChildren(element('p', { class: 'hint' },
      'Nothing is selected. Click an op, or press j.'));
  }

  /** @param {Run} run @param {number} span @param {boolean} reveal moves the view so that the op is in it */
  select(run, span, reveal) {
    this.show(run, span);
    this.status.textContent = `${run.op(span)}, ${time_words(run.start[span])} to ${time_words(run.end[span])}`;
    this.changed(run, span, reveal);
  }

  /** @param {Run} run @param {number} span */
  show(run, span) {
    this.op = { run, span };
    show_details(this.details, run, span, (other) => this.select(run, other, true));
  }

  /** Other runs: the op of the same name in the same lane, if there is one. @param {Run[]} runs */
  set_runs(runs) {
    if (!this.op) return;
    const { run, span } = this.op;
    const same = runs[run.number] ? runs[run.number].same_op(run, span) : -1;
    if (same >= 0) this.show(runs[run.number], same);
    else this.clear();
  }

  /** The next op of the lane, or the first after a time. @param {number} step @param {number} from */
  next_op(step, from) {
    if (!this.op) {
      for (const row of this.layout.rows) {
        const at = first_after(row, null, from);
        if (at < row.run.lane_begin[row.lane + 1]) {
          this.select(row.run, at, true);
          return;
        }
      }
      return;
    }
    const { run, span } = this.op;
    const lane = run.lane_of(span);
    const next = span + step;
    if (next >= run.lane_begin[lane] && next < run.lane_begin[lane + 1]) this.select(run, next, true);
  }

  /** The op at the same time in the next row. @param {number} step */
  next_lane(step) {
    if (!this.op) return;
    const { rows } = this.layout;
    const { run, span } = this.op;
    const row = this.layout.row_of(run, run.lane_of(span));
    for (let i = row ? rows.indexOf(row) + step : 0; i >= 0 && i < rows.length; i += step) {
      const end = rows[i].run.lane_begin[rows[i].lane + 1];
      const at = Math.min(end - 1, first_after(rows[i], null, run.start[span]));
      if (at >= rows[i].run.lane_begin[rows[i].lane]) {
        this.select(rows[i].run, at, true);
        return;
      }
    }
  }
}
