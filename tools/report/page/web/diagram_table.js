// The ops of the view as a table, for those who do not see the picture; made when it is opened.
import { element } from './dom.js';
import { first_after } from './diagram_layout.js';
import { facts_of } from './diagram_details.js';

const page_rows = 100;
const columns = ['what', 'where', 'stage', 'micro-batch', 'start', 'duration', 'bytes', 'weights',
  'waited'];

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
    let more = 0;
    for (const row of rows) {
      const begin = first_after(row, null, view.from, 0);
      for (let i = begin; i < row.run.lane_begin[row.lane + 1]; ++i) {
        if (row.run.start[i] >= view.to) break;
        if (skip > 0) --skip;
        else if (listed.length < page_rows) listed.push([row.run, i]);
        else ++more;
      }
    }
    const first = page * page_rows;
    caption.textContent = listed.length === 0 ? 'No more ops in the view.'
      : `Ops ${first + 1} to ${first + listed.length} of ${first + listed.length + more} in the view`;
    /** @type {HTMLButtonElement} */ (back).disabled = page === 0;
    /** @type {HTMLButtonElement} */ (on).disabled = more === 0;
    body.replaceChildren(...listed.map(([run, span]) => {
      const facts = new Map(facts_of(run, span));
      return element('tr', {}, element('th', { scope: 'row' }, run.op(span)),
        ...columns.map((name) => element('td', {}, facts.get(name) ?? '')));
    }));
  };
  back.addEventListener('click', () => { page = Math.max(0, page - 1); show(); });
  on.addEventListener('click', () => { ++page; show(); });
  host.addEventListener('toggle', () => { page = 0; show(); });
  return () => { page = 0; show(); };
}
