// The ops of the view as a table, for those who do not see the picture; made when it is opened.
import { element } from './dom.js';
import { first_after } from './diagram_layout.js';
import { facts_of } from './diagram_details.js';

const page_rows = 100;
const pause = 120; // ms that the view stands still
const columns = ['what', 'where', 'stage', 'micro-batch', 'start', 'duration', 'bytes', 'weights',
  'waited'];

/** The first span of a lane that starts at that time or after.
 * @param {import('./diagram_run.js').Run} run @param {number} lane @param {number} time */
function first_starting(run, lane, time) {
  let low = run.lane_begin[lane];
  let high = run.lane_begin[lane + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (run.start[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * @param {HTMLDetailsElement} host
 * @param {() => { rows: import('./diagram_layout.js').Row[],
 *   view: import('./diagram_canvas.js').View }} now
 */
export function table_of_ops(host, now) {
  let page = 0;
  const caption = element('caption');
  const body = element('tbody');
  const back = element('button', { type: 'button' }, 'previous rows');
  const on = element('button', { type: 'button' }, 'next rows');
  const table = element('table', {}, caption,
    element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, 'op'),
      ...columns.map((name) => element('th', { scope: 'col' }, name)))), body);
  const frame = element('div', { class: 'scrolls', tabindex: 0, role: 'region',
    'aria-label': 'ops of the view' }, table);
  host.append(element('p', {}, back, ' ', on), frame);

  const show = () => {
    if (!host.open) return;
    const { rows, view } = now();
    /** @type {[import('./diagram_run.js').Run, number][]} */
    const listed = [];
    let skip = page * page_rows;
    let count = 0;
    for (const row of rows) {
      const begin = first_after(row, null, view.from);
      const end = Math.max(begin, first_starting(row.run, row.lane, view.to));
      for (let i = begin + skip; i < end && listed.length < page_rows; ++i) listed.push([row.run, i]);
      skip = Math.max(0, skip - (end - begin));
      count += end - begin;
    }
    const first = page * page_rows;
    caption.textContent = listed.length === 0 ? 'No more ops in the view.'
      : `Ops ${first + 1} to ${first + listed.length} of ${count} in the view`;
    /** @type {HTMLButtonElement} */ (back).disabled = page === 0;
    /** @type {HTMLButtonElement} */ (on).disabled = first + listed.length === count;
    body.replaceChildren(...listed.map(([run, span]) => {
      const facts = new Map(facts_of(run, span));
      return element('tr', {}, element('th', { scope: 'row' }, run.op(span)),
        ...columns.map((name) => element('td', {}, facts.get(name) ?? '')));
    }));
  };
  back.addEventListener('click', () => { page = Math.max(0, page - 1); show(); });
  on.addEventListener('click', () => { ++page; show(); });
  host.addEventListener('toggle', () => { page = 0; show(); });
  let timer = 0;
  return () => {
    if (!host.open) return;
    clearTimeout(timer);
    timer = setTimeout(() => { page = 0; show(); }, pause);
  };
}
