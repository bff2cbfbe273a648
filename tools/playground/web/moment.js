// What each device of a run does at a time: its op, what it has done, what is in flight, its memory.
import { element } from '../../report/page/web/dom.js';
import { lane_kinds } from '../../report/page/web/diagram_run.js';
import { bytes_words, shortened } from '../../report/page/web/words.js';

/** @typedef {import('../../report/page/web/diagram_run.js').Run} Run */
/** What a device does: the spans that run, and counts. Without a curve `bytes` is null.
 * @typedef {{ running: number[], done: number, ops: number, in_flight: number, bytes: number | null }} Doing */

const backwards = ['I', 'W', 'B'];

/** How many of the sorted times are not after that one. @param {Float64Array} times @param {number} time */
function count_until(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * When micro-batches begin and end to be in flight, by device: from the end of their first forward
 * there to the end of their last backward there, or anywhere if that device runs none.
 * @param {Run} run
 */
function flights_of(run) {
  const key_of = (/** @type {number} */ span) => run.microbatch[span] * 65536 + run.stage[span];
  const devices = run.devices.map(() => ({ begins: new Map(), ends: new Map() }));
  /** @type {Map<number, number>} */
  const anywhere = new Map();
  devices.forEach(({ begins, ends }, device) => {
    for (let i = run.lane_begin[device * lane_kinds]; i < run.lane_begin[device * lane_kinds + 1]; ++i) {
      const kind = run.kinds[run.kind[i]];
      const key = key_of(i);
      if (kind === 'F') begins.set(key, Math.min(begins.get(key) ?? Infinity, run.end[i]));
      if (!backwards.includes(kind)) continue;
      ends.set(key, Math.max(ends.get(key) ?? 0, run.end[i]));
      anywhere.set(key, Math.max(anywhere.get(key) ?? 0, run.end[i]));
    }
  });
  return devices.map(({ begins, ends }) => ({
    begins: Float64Array.from(begins.values()).sort(),
    ends: Float64Array.from(begins.keys(), (key) => ends.get(key) ?? anywhere.get(key) ?? Infinity).sort(),
  }));
}

export class Moments {
  /** @param {Run} run @param {number} reserve the category of memory that is no part of a peak; -1: none */
  constructor(run, reserve) {
    this.run = run;
    this.reserve = reserve;
    this.flights = flights_of(run);
    /** Ends of the ops of each device, sorted. */
    this.ends = run.devices.map((_, device) => run.end.slice(
      run.lane_begin[device * lane_kinds], run.lane_begin[device * lane_kinds + 1]).sort());
    this.peak = Math.max(0, ...run.peaks.map((one) => one.bytes));
  }

  /** @param {number} device @param {number} time ps @returns {Doing} */
  doing(device, time) {
    const { run } = this;
    const begin = run.lane_begin[device * lane_kinds];
    const end = run.lane_begin[device * lane_kinds + 1];
    const started = count_until(run.start.subarray(begin, end), time);
    const running = [];
    // Spans that overlap are neighbours.
    for (let i = begin + started - 1; i >= Math.max(begin, begin + started - 4); --i) {
      if (run.end[i] > time) running.unshift(i);
    }
    const { begins, ends } = this.flights[device];
    return { running, done: count_until(this.ends[device], time), ops: end - begin,
      in_flight: count_until(begins, time) - count_until(ends, time), bytes: this.bytes(device, time) };
  }

  /** @param {number} device @param {number} time */
  bytes(device, time) {
    if (!this.run.has_curves) return null;
    const curve = this.run.curves[device];
    const point = curve ? curve.point_at(time) : -1;
    if (point < 0) return 0;
    const kept = this.reserve < 0 ? 0 : curve.bytes[point * curve.categories + this.reserve];
    return curve.total[point] - kept;
  }
}

/** What the columns are: [words, definition]. */
/** @type {[string, string][]} */
const moment_columns = [
  ['runs', 'the op that the device runs at this time'],
  ['done', 'ops of the device that have ended'],
  ['in flight', 'micro-batches whose forward has ended on the device and whose backward has not'],
  ['holds', 'memory of the device at this time'],
];

/** A table for each run, whose cells follow the time. */
export class MomentTables {
  constructor() {
    this.host = element('div', { class: 'moments', hidden: true });
    /** @type {Moments[]} */
    this.moments = [];
    /** @type {HTMLElement[][][]} cells by run, device and column */
    this.cells = [];
  }

  /** @param {Run[]} runs @param {string[]} categories */
  set_runs(runs, categories) {
    this.moments = runs.map((run) => new Moments(run, categories.indexOf('reserve')));
    this.cells = [];
    this.host.replaceChildren(...runs.map((run) => this.table_of(run)));
  }

  /** @param {Run} run */
  table_of(run) {
    /** @type {HTMLElement[][]} */
    const rows = run.devices.map(() => moment_columns.map(() => element('td', {})));
    this.cells.push(rows);
    const title = shortened(run.title, 48);
    return element('div', { class: 'scrolls', tabindex: 0, role: 'group', 'aria-label': `${title}, at this time` },
      element('table', { class: 'moment' }, element('caption', { dir: 'auto' }, title),
        element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, 'device'),
          ...moment_columns.map(([words, about]) => element('th', { scope: 'col', title: about }, words)))),
        element('tbody', {}, ...rows.map((cells, device) => element('tr', {},
          element('th', { scope: 'row', dir: 'auto' }, shortened(run.devices[device], 18)), ...cells)))));
  }

  /** @param {number} time ps */
  show(time) {
    const most = Math.max(1, ...this.moments.map((one) => one.peak));
    this.moments.forEach((moments, r) => {
      const { run } = moments;
      const most_of = run.exact_curves ? '' : '≤ ';
      this.cells[r].forEach(([runs, done, in_flight, holds], device) => {
        const now = moments.doing(device, time);
        put(runs, now.running.map((span) => run.op(span)).join(' + ') || '–');
        put(done, `${now.done} of ${now.ops}`);
        put(in_flight, String(now.in_flight));
        put(holds, now.bytes === null ? '–' : `${most_of}${bytes_words(now.bytes, 3)}`);
        holds.style.setProperty('--share', `${((now.bytes ?? 0) / most * 100).toFixed(1)}%`);
      });
    });
  }
}

/** @param {HTMLElement} cell @param {string} words */
function put(cell, words) {
  if (cell.textContent !== words) cell.textContent = words;
}
