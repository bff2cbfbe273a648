// One run of a diagram, decoded: columns by span, and the questions that they answer.
import { begins_of, read_varints, summed } from './data.js';
import { read_curves } from './diagram_curve.js';

export const lane_kinds = 5;
/** @type {Float64Array} */
const no_numbers = new Float64Array(0);
/** @type {Uint8Array} */
const no_marks = new Uint8Array(0);

export class Run {
  // By span, in picoseconds; and the end of the last.
  start = no_numbers;
  end = no_numbers;
  makespan = 0;
  stages = 0;
  /** @type {string[]} */
  kinds_seen = [];
  // Idle intervals, by device.
  idle_begin = new Uint32Array(1);
  idle_start = no_numbers;
  idle_end = no_numbers;
  idle_cause = no_marks;
  // Pieces of the critical path.
  path_kind = no_marks;
  path_end = no_numbers;
  path_span = no_numbers;
  /** 1 for spans on the critical path. */
  on_path = no_marks;

  /**
   * @param {any} data of the section
   * @param {number} number of the run
   * @param {Map<string, import('./data.js').Numbers>} blobs
   */
  constructor(data, number, blobs) {
    const blob = (/** @type {string} */ name) => blobs.get(`${number}.${name}`);
    const json = data.runs[number];
    this.number = number;
    this.title = /** @type {string} */ (json.title);
    this.subtitle = /** @type {string} */ (json.subtitle);
    this.devices = /** @type {string[]} */ (json.devices);
    this.kinds = /** @type {string[]} */ (data.kinds);
    this.lane_names = /** @type {string[]} */ (data.lanes);
    this.causes = /** @type {string[]} */ (data.causes);
    this.limits = /** @type {(number | null)[]} */ (json.limits);
    this.peaks = /** @type {{ bytes: number, at_ps: number, op?: string }[]} */ (json.peaks);
    this.exact_curves = /** @type {boolean} */ (json.exact_curves);
    this.kind = /** @type {Uint8Array} */ (blob('kind'));
    this.stage = /** @type {Uint16Array} */ (blob('stage'));
    this.part = /** @type {Uint8Array} */ (blob('part'));
    this.spans = this.kind.length;
    this.count_stages_and_kinds();
    this.microbatch = summed(read_varints(blob('number'), this.spans, true));
    this.lane_begin = begins_of(blob('lane_sizes') ?? []);
    this.read_times(read_varints(blob('gap'), this.spans, true), read_varints(blob('time'), this.spans));
    this.version_blob = blob('version');
    /** @type {Float64Array | null} */
    this.version_table = null;
    this.need_blobs = { sizes: blob('need_sizes'), needs: blob('need') };
    /** @type {{ begin: Uint32Array, of: Uint32Array } | null} */
    this.need_table = null;
    /** @type {{ begin: Uint32Array, of: Uint32Array } | null} */
    this.reader_table = null;
    this.read_idle(blob);
    this.read_path(blob);
    this.has_curves = (blob('curve_sizes') ?? []).some((/** @type {number} */ size) => size > 0);
    /** @type {import('./diagram_curve.js').Curve[] | null} */
    this.curve_table = null;
    this.curves_of = () => read_curves(blob, data.categories.length);
    /** @type {Map<number, number>} */
    this.bytes_of = new Map();
    for (const [kind, stage, part, bytes] of json.bytes) {
      this.bytes_of.set((kind * 65536 + stage) * 128 + part, bytes);
    }
  }

  count_stages_and_kinds() {
    const seen = new Uint8Array(this.kinds.length);
    let most = -1;
    for (let i = 0; i < this.spans; ++i) {
      seen[this.kind[i]] = 1;
      if (this.stage[i] > most) most = this.stage[i];
    }
    this.stages = most + 1;
    this.kinds_seen = this.kinds.filter((_, kind) => seen[kind] === 1);
  }

  /** @param {Float64Array} gap @param {Float64Array} time */
  read_times(gap, time) {
    this.start = gap;
    this.end = time;
    for (let lane = 0; lane + 1 < this.lane_begin.length; ++lane) {
      let free = 0;
      for (let i = this.lane_begin[lane]; i < this.lane_begin[lane + 1]; ++i) {
        this.start[i] += free;
        free = this.end[i] = this.start[i] + this.end[i];
        if (free > this.makespan) this.makespan = free;
      }
    }
  }

  /** @param {(name: string) => import('./data.js').Numbers | undefined} blob */
  read_idle(blob) {
    this.idle_begin = begins_of(blob('idle_sizes') ?? []);
    const count = this.idle_begin[this.idle_begin.length - 1];
    this.idle_start = read_varints(blob('idle_gap'), count, true);
    this.idle_end = read_varints(blob('idle_time'), count);
    this.idle_cause = /** @type {Uint8Array} */ (blob('idle_cause') ?? no_marks);
    for (let device = 0; device < this.devices.length; ++device) {
      let free = 0;
      for (let i = this.idle_begin[device]; i < this.idle_begin[device + 1]; ++i) {
        this.idle_start[i] += free;
        free = this.idle_end[i] += this.idle_start[i];
      }
    }
  }

  /** @param {(name: string) => import('./data.js').Numbers | undefined} blob */
  read_path(blob) {
    this.path_kind = /** @type {Uint8Array} */ (blob('path_kind') ?? no_marks);
    const count = this.path_kind.length;
    this.path_end = count ? summed(read_varints(blob('path_time'), count)) : no_numbers;
    this.path_span = count ? summed(read_varints(blob('path_span'), count, true)) : no_numbers;
    this.on_path = new Uint8Array(this.spans);
    for (let i = 0; i < count; ++i) if (this.path_kind[i] === 0) this.on_path[this.path_span[i]] = 1;
  }

  /** By device; read when first asked for: the rows are drawn without. */
  get curves() {
    this.curve_table ??= this.curves_of();
    return this.curve_table;
  }

  /** @param {number} span */
  lane_of(span) {
    let low = 0;
    let high = this.lane_begin.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.lane_begin[middle] <= span) low = middle;
      else high = middle;
    }
    while (low + 1 < this.lane_begin.length && this.lane_begin[low + 1] <= span) ++low;
    return low;
  }

  /** As the program spells it: "0F3". @param {number} span */
  op(span) {
    const part = this.part[span] & 127;
    return `${this.stage[span]}${this.kinds[this.kind[span]]}${this.microbatch[span]}` +
      (part ? `.${part}` : '');
  }

  /** Whether the number of the op is an update's. @param {number} span */
  counts_updates(span) {
    return ['U', 'REDUCE_GRAD', 'SEND_WEIGHTS', 'RECV_WEIGHTS'].includes(
      this.kinds[this.kind[span]]);
  }

  /** Bytes that it moves, if that is known. @param {number} span */
  bytes(span) {
    return this.bytes_of.get(
      (this.kind[span] * 65536 + this.stage[span]) * 128 + (this.part[span] & 127));
  }

  /** Updates that the weights had seen. @param {number} span */
  version(span) {
    if (!this.version_blob) return 0;
    this.version_table ??= summed(read_varints(this.version_blob, this.spans, true));
    return this.version_table[span];
  }

  /** The op of the same name in the same lane; -1: there is none.
   * @param {Run} other @param {number} span of the other run */
  same_op(other, span) {
    const lane = other.lane_of(span);
    if (lane + 1 >= this.lane_begin.length) return -1;
    for (let i = this.lane_begin[lane]; i < this.lane_begin[lane + 1]; ++i) {
      if (this.microbatch[i] === other.microbatch[span] && this.stage[i] === other.stage[span] &&
          this.kind[i] === other.kind[span] && (this.part[i] & 127) === (other.part[span] & 127)) {
        return i;
      }
    }
    return -1;
  }

  /** Read when first asked for: the page is drawn without. */
  needs_table() {
    if (!this.need_table) {
      const begin = begins_of(read_varints(this.need_blobs.sizes, this.spans));
      const deltas = read_varints(this.need_blobs.needs, begin[this.spans], true);
      const of = new Uint32Array(deltas.length);
      for (let span = 0; span < this.spans; ++span) {
        for (let i = begin[span]; i < begin[span + 1]; ++i) of[i] = span + deltas[i];
      }
      this.need_table = { begin, of };
    }
    return this.need_table;
  }

  /** @param {number} span */
  needs(span) {
    const { begin, of } = this.needs_table();
    return of.subarray(begin[span], begin[span + 1]);
  }

  /** What needs the span. @param {number} span */
  readers(span) {
    if (!this.reader_table) {
      const { begin, of } = this.needs_table();
      const sizes = new Uint32Array(this.spans);
      for (const need of of) ++sizes[need];
      const readers_begin = begins_of(sizes);
      const next = readers_begin.slice();
      const readers = new Uint32Array(of.length);
      for (let i = 0; i < this.spans; ++i) {
        for (let k = begin[i]; k < begin[i + 1]; ++k) readers[next[of[k]]++] = i;
      }
      this.reader_table = { begin: readers_begin, of: readers };
    }
    const { begin, of } = this.reader_table;
    return of.subarray(begin[span], begin[span + 1]);
  }

  /**
   * How long its lane was free before the span, and for which of its needs: the one that ended
   * last. `queued`: the part of the wait after that, for a link that others used.
   * @param {number} span
   */
  wait(span) {
    const lane = this.lane_of(span);
    let free = 0;
    // Of spans that overlap, such as receives, the last end counts.
    for (let i = Math.max(this.lane_begin[lane], span - 8); i < span; ++i) {
      if (this.end[i] <= this.start[span]) free = Math.max(free, this.end[i]);
      else if (!(this.part[i] & 128)) free = this.start[span];
    }
    const time = this.start[span] - free;
    let last = -1;
    for (const need of this.needs(span)) if (last < 0 || this.end[need] > this.end[last]) last = need;
    if (time <= 0) return { time: 0, need: -1, queued: 0, cause: '' };
    const queued = last < 0 ? 0 : this.start[span] - Math.max(free, this.end[last]);
    const late = last >= 0 && this.end[last] > free;
    return { time, need: late ? last : -1, queued: late ? Math.max(0, queued) : 0,
      cause: this.cause_before(span, lane) };
  }

  /** The cause of the idle time that ends with the span. @param {number} span @param {number} lane */
  cause_before(span, lane) {
    if (lane % lane_kinds !== 0) return '';
    const device = lane / lane_kinds;
    for (let i = this.idle_begin[device]; i < this.idle_begin[device + 1]; ++i) {
      if (this.idle_end[i] === this.start[span]) return this.causes[this.idle_cause[i]];
    }
    return '';
  }
}
