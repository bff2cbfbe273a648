// The figures of the runs, side by side.
import { element } from '../../report/page/web/dom.js';
import { bytes_words, time_words } from '../../report/page/web/words.js';

/** @param {number | null | undefined} share */
const percent = (share) => (share === null || share === undefined ? '–' : `${(share * 100).toFixed(1)} %`);

/** @param {any} row */
function peak(row) {
  const bytes = (row.per_device ?? []).map((/** @type {any} */ one) => one.peak_bytes ?? 0);
  if (bytes.length === 0) return '–';
  const most = Math.max(...bytes);
  const fits = row.fits === 'no' ? ' · does not fit' : row.fits === 'yes' ? ' · fits' : '';
  return `${bytes_words(most, 3)} on ${row.per_device[bytes.indexOf(most)].name}${fits}`;
}

/** What each figure is: [words, definition, value]. */
/** @type {[string, string, (row: any) => string][]} */
const figures = [
  ['step', 'from the end of one step to the end of the next, in the steady state',
    (row) => time_words(row.step_time_ps ?? row.makespan_ps)],
  ['bubble', '1 − busy time / (devices × step time)', (row) => percent(row.bubble_fraction)],
  ['speed-up', 'over one device that does the same work',
    (row) => (row.speedup ? `${row.speedup.toFixed(2)} ×` : '–')],
  ['throughput', 'in the steady state',
    (row) => (row.throughput ? `${row.throughput.toPrecision(4)} ${row.throughput_unit}` : '–')],
  ['peak memory', 'the fullest device', peak],
  ['links add', '1 − step time with free links / step time',
    (row) => percent(row.exposed_communication_fraction)],
];

/**
 * @param {HTMLElement} host
 * @param {{ row?: any, error?: { message: string } }[]} runs
 */
export function show_figures(host, runs) {
  const rows = runs.map((run) => run.row);
  const base = rows[0]?.step_time_ps;
  const head = element('tr', {}, element('th', { scope: 'col' }, 'schedule'),
    ...figures.map(([words, about]) => element('th', { scope: 'col', title: about }, words)));
  const lines = runs.map((run, i) => {
    const row = run.row;
    if (!row) {
      return element('tr', { class: 'failed' }, element('th', { scope: 'row' }, 'AB'[i] ?? ''),
        element('td', { colspan: figures.length, class: 'error' }, run.error?.message ?? ''));
    }
    const cells = figures.map(([words, about, value]) => element('td',
      { title: about, 'data-figure': words }, value(row)));
    const faster = i > 0 && base && row.step_time_ps
      ? ` (${((row.step_time_ps / base - 1) * 100).toFixed(1).replace('-', '−')} %)` : '';
    cells[0].append(faster);
    cells[0].dataset.ps = String(row.step_time_ps ?? row.makespan_ps);
    return element('tr', {}, element('th', { scope: 'row', dir: 'auto' },
      row.schedule ?? row.file ?? ''), ...cells);
  });
  host.replaceChildren(element('table', { class: 'figures' },
    element('thead', {}, head), element('tbody', {}, ...lines)));
}
