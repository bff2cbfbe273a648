// What is known of one op, in words.
import { element } from './dom.js';
import { lane_kinds } from './diagram_run.js';
import { idle_paints, op_paints, stream_paints } from './palette.js';
import { bytes_words, shortened, time_words } from './words.js';

/** @param {string} kind */
export function kind_words(kind) {
  const sends = kind.startsWith('SEND_') ? ' sent' : kind.startsWith('RECV_') ? ' received' : '';
  return (op_paints[kind] ?? stream_paints[kind]).words + sends;
}

/**
 * Name and value of each fact.
 * @param {import('./diagram_run.js').Run} run
 * @param {number} span
 * @returns {[string, string][]}
 */
export function facts_of(run, span) {
  const lane = run.lane_of(span);
  const place = (/** @type {number} */ of) => run.devices[Math.floor(run.lane_of(of) / lane_kinds)];
  /** @type {[string, string][]} */
  const facts = [
    ['what', kind_words(run.kinds[run.kind[span]])],
    ['where', `${shortened(place(span), 40)}, ${run.lane_names[lane % lane_kinds].replace('_', ' ')}`],
    ['stage', String(run.stage[span])],
    [run.counts_updates(span) ? 'update' : 'micro-batch', String(run.microbatch[span])],
    ['start', time_words(run.start[span], 7)],
    ['duration', time_words(run.end[span] - run.start[span], 7)],
  ];
  const bytes = run.bytes(span);
  if (bytes !== undefined) facts.push(['bytes', bytes_words(bytes, 7)]);
  if (['F', 'B', 'I', 'W', 'R'].includes(run.kinds[run.kind[span]])) {
    const updates = run.version(span);
    facts.push(['weights', updates === 0 ? 'initial version'
      : `after ${updates} update${updates === 1 ? '' : 's'}`]);
  }
  const wait = run.wait(span);
  if (wait.time > 0) {
    const need = wait.need < 0 ? '' : ` for ${run.op(wait.need)} on ${shortened(place(wait.need), 40)}`;
    const queued = wait.queued > 0 ? `, ${time_words(wait.queued)} of it after that arrived` : '';
    const cause = wait.cause ? ` (idle: ${idle_paints[wait.cause].words})` : '';
    facts.push(['waited', `${time_words(wait.time, 7)}${need}${queued}${cause}`]);
  } else {
    facts.push(['waited', 'not at all: its lane was busy until it began']);
  }
  return facts;
}

/**
 * @param {HTMLElement} host
 * @param {import('./diagram_run.js').Run} run
 * @param {number} span
 * @param {((span: number) => void) | null} go shows another op; null: no lists of others
 */
export function show_details(host, run, span, go) {
  host.dataset.op = run.op(span);
  host.dataset.startPs = String(run.start[span]);
  host.dataset.endPs = String(run.end[span]);
  const list = element('dl');
  for (const [name, value] of facts_of(run, span)) {
    list.append(element('dt', {}, name), element('dd', { 'data-fact': name }, value));
  }
  host.replaceChildren(element('p', { class: 'op' }, run.op(span)), list);
  if (!go) return;
  for (const [words, others] of /** @type {[string, Uint32Array][]} */ (
    [['needs', run.needs(span)], ['needed by', run.readers(span)]])) {
    const line = element('p', { class: 'others' }, `${words} `);
    for (const other of others.subarray(0, 12)) {
      line.append(element('button', { type: 'button', onclick: () => go(other) }, run.op(other)), ' ');
    }
    if (others.length > 12) line.append(`and ${others.length - 12} more`);
    if (others.length === 0) line.append('none');
    host.append(line);
  }
}

/**
 * Beside a place of the frame, on the side with more room.
 * @param {HTMLElement} tip
 * @param {{ run: import('./diagram_run.js').Run, span: number }} op
 * @param {number} x
 * @param {number} y
 * @param {number} width of the frame
 */
export function show_op_tip(tip, op, x, y, width) {
  tip.hidden = false;
  show_details(tip, op.run, op.span, null);
  const right = x > width * 0.6;
  tip.style.left = right ? '' : `${x + 16}px`;
  tip.style.right = right ? `${width - x + 12}px` : '';
  tip.style.top = `${y + 18}px`;
}
