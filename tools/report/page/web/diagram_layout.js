// Where the lanes are: rows from the top, by run, device and stream.
import { lane_kinds } from './diagram_run.js';

/**
 * A lane on the screen. Spans that overlap take turns in `tracks`: each is the numbers of its spans
 * in order of time. Of an overlapped pair the two halves share the height; what overlaps nothing
 * has all of it, and is in all tracks.
 * @typedef {{ run: import('./diagram_run.js').Run, lane: number, device: number, stream: number,
 *   tracks: (Uint32Array | null)[], y: number, height: number }} Row
 * @typedef {{ run: import('./diagram_run.js').Run, y: number, height: number }} Heading
 */

/**
 * @param {import('./diagram_run.js').Run} run
 * @param {number} span
 * @param {number} begin
 * @param {number} end
 */
function is_alone(run, span, begin, end) {
  return (span === begin || run.end[span - 1] <= run.start[span]) &&
    (span + 1 >= end || run.start[span + 1] >= run.end[span]);
}

/**
 * One track where nothing overlaps: null stands for all spans of the lane.
 * @param {import('./diagram_run.js').Run} run
 * @param {number} lane
 * @returns {(Uint32Array | null)[]}
 */
function tracks_of(run, lane) {
  const begin = run.lane_begin[lane];
  const end = run.lane_begin[lane + 1];
  let overlap = false;
  for (let i = begin + 1; i < end && !overlap; ++i) overlap = run.start[i] < run.end[i - 1];
  if (!overlap) return [null];
  /** @type {number[][]} */
  const tracks = [[]];
  /** @type {number[]} */
  const free = [0];
  for (let i = begin; i < end; ++i) {
    if (is_alone(run, i, begin, end)) {
      for (const list of tracks) list.push(i);
      free.fill(run.end[i]);
      continue;
    }
    let track = free.findIndex((time) => time <= run.start[i]);
    if (track < 0 && tracks.length < 4) {
      track = tracks.length;
      tracks.push(tracks[0].filter((other) => is_alone(run, other, begin, end)));
      free.push(0);
    }
    // Of more than four at a time the track that is free first shows the later part.
    if (track < 0) track = free.indexOf(Math.min(...free));
    tracks[track].push(i);
    free[track] = Math.max(free[track], run.end[i]);
  }
  return tracks.map((list) => Uint32Array.from(list));
}

export class Layout {
  /** @param {import('./diagram_run.js').Run[]} runs */
  constructor(runs) {
    this.runs = runs;
    /** @type {Map<string, (Uint32Array | null)[]>} */
    this.tracks = new Map();
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Heading[]} */
    this.headings = [];
    this.height = 0;
  }

  /** @param {import('./diagram_run.js').Run[]} runs */
  set_runs(runs) {
    this.runs = runs;
    this.tracks.clear();
  }

  /**
   * @param {number} room px
   * @param {boolean} streams whether messages and copies have rows
   * @param {(device: number) => boolean} wanted
   */
  arrange(room, streams, wanted) {
    this.rows = [];
    this.headings = [];
    let units = 0;
    for (const run of this.runs) {
      for (let lane = 0; lane + 1 < run.lane_begin.length; ++lane) {
        const stream = lane % lane_kinds;
        const device = (lane - stream) / lane_kinds;
        if (!wanted(device)) continue;
        const empty = run.lane_begin[lane] === run.lane_begin[lane + 1];
        if (stream > 0 && (empty || !streams)) continue;
        const key = `${run.number}.${lane}`;
        if (!this.tracks.has(key)) this.tracks.set(key, tracks_of(run, lane));
        const tracks = /** @type {(Uint32Array | null)[]} */ (this.tracks.get(key));
        this.rows.push({ run, lane, device, stream, tracks, y: 0, height: 0 });
        units += stream === 0 ? 2 : 1;
      }
    }
    const heading = this.runs.length > 1 ? 24 : 0;
    const unit = Math.max(4, Math.min(14,
      Math.floor((room - heading * this.runs.length) / Math.max(1, units))));
    let y = 0;
    /** @type {Row | null} */
    let before = null;
    for (const row of this.rows) {
      if (heading && (!before || before.run !== row.run)) {
        this.headings.push({ run: row.run, y, height: heading });
        y += heading;
      } else if (before && before.device !== row.device) {
        y += unit > 6 ? 3 : 1;
      }
      row.y = y;
      row.height = (row.stream === 0 ? 2 : 1) * unit;
      y += row.height;
      before = row;
    }
    this.height = y;
  }

  /** @param {number} y */
  row_at(y) {
    return this.rows.find((row) => y >= row.y && y < row.y + row.height) ?? null;
  }

  /** The op that is drawn at a height and a time; null: none. @param {number} y @param {number} time */
  op_at(y, time) {
    const row = this.row_at(y);
    if (!row) return null;
    const { run, tracks } = row;
    const list = tracks[Math.min(tracks.length - 1, Math.floor((y - row.y) / row.height * tracks.length))];
    const at = first_after(row, list, time);
    if (at >= (list ? list.length : run.lane_begin[row.lane + 1])) return null;
    const span = list ? list[at] : at;
    return run.start[span] <= time ? { run, span } : null;
  }

  /** @param {import('./diagram_run.js').Run} run @param {number} lane */
  row_of(run, lane) {
    return this.rows.find((row) => row.run === run && row.lane === lane) ?? null;
  }

  /**
   * Where a span is within its row: overlapping ones share the height.
   * @param {Row} row
   * @param {number} span
   */
  box(row, span) {
    if (row.tracks.length === 1) return { y: row.y, height: row.height };
    const inside = row.tracks.map((list) => list !== null && includes_sorted(list, span));
    const height = row.height / row.tracks.length;
    const count = inside.filter((one) => one).length;
    return { y: row.y + Math.max(0, inside.indexOf(true)) * height, height: count * height };
  }
}

/** @param {Uint32Array} list @param {number} value */
function includes_sorted(list, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return list[low] === value;
}

/**
 * The first of the track's spans with end × scale + shift ≥ limit; as a position in the track. Gallops
 * from `from`.
 * @param {Row} row
 * @param {Uint32Array | null} track
 * @param {number} scale
 * @param {number} shift
 * @param {number} limit
 * @param {number} from
 */
export function first_reaching(row, track, scale, shift, limit, from) {
  const { run, lane } = row;
  const begin = track ? 0 : run.lane_begin[lane];
  const end = track ? track.length : run.lane_begin[lane + 1];
  const ends = run.end;
  let low = Math.max(begin, from);
  let step = 1;
  let high = low;
  while (high < end && ends[track ? track[high] : high] * scale + shift < limit) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = Math.min(high, end);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[track ? track[middle] : middle] * scale + shift < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The first of the track's spans that ends after that time. Times are whole picoseconds.
 * @param {Row} row
 * @param {Uint32Array | null} track
 * @param {number} time
 */
export function first_after(row, track, time) {
  return first_reaching(row, track, 1, 0, Math.floor(time) + 1, 0);
}
