// The figures of the runs, side by side.
import { element } from '../../report/page/web/dom.js';
import { bytes_words, time_words } from '../../report/page/web/words.js';

/** @param {number | null | undefined} share */
const percent = (share) => (share === null || share === undefined ? '–' : `${(share * 100).toFixed(1)} %`);

/** A figure, and the range of published runs alike, if there is one. @typedef {[string, string?]} Figure */

/** @param {any} row @returns {Figure} */
function peak(row) {
  const bytes = (row.per_device ?? []).map((/** @type {any} */ one) => one.peak_bytes ?? 0);
  if (bytes.length === 0) return ['–'];
  const most = Math.max(...bytes);
  const fits = row.fits === 'no' ? ' · does not fit' : row.fits === 'yes' ? ' · fits' : '';
  const range = row.peak_low_bytes && row.peak_high_bytes
    ? `${bytes_words(row.peak_low_bytes, 3)} to ${bytes_words(row.peak_high_bytes, 3)}` : undefined;
  return [`${bytes_words(most, 3)} on ${row.per_device[bytes.indexOf(most)].name}${fits}`, range];
}

/** @param {any} row @returns {Figure} */
function tokens(row) {
  if (!row.tokens_per_second_per_device) return ['–'];
  /** @param {number} all */
  const each = (all) => (all / row.devices).toFixed(0);
  const range = row.tokens_per_second_low
    ? `${each(row.tokens_per_second_low)} to ${each(row.tokens_per_second_high)}` : undefined;
  return [row.tokens_per_second_per_device.toFixed(1), range];
}

/** @param {any} row @returns {Figure} */
function mfu(row) {
  if (!row.mfu) return ['–'];
  return [percent(row.mfu), row.mfu_low ? `${percent(row.mfu_low)} to ${percent(row.mfu_high)}` : undefined];
}

/** @param {any} row @returns {Figure} */
function step(row) {
  return [time_words(row.step_time_ps ?? row.makespan_ps),
    row.step_low_ps ? `${time_words(row.step_low_ps, 3)} to ${time_words(row.step_high_ps, 3)}` : undefined];
}

/** What each figure is: [words, definition, value]; a language model has its own beside. */
/** @type {[string, string, (row: any) => Figure][]} */
const of_language_models = [
  ['tokens/s/GPU', 'tokens a second on each device', tokens],
  ['MFU', 'operations of the model / (step time × the peak rate of the devices)', mfu],
];
/** @type {[string, string, (row: any) => Figure][]} */
const figures = [
  ['step', 'from the end of one step to the end of the next, in the steady state',
    step],
  ['bubble', '1 − busy time / (devices × step time)', (row) => [percent(row.bubble_fraction)]],
  ['speed-up', 'over one device that does the same work',
    (row) => [row.speedup ? `${row.speedup.toFixed(2)} ×` : '–']],
  ['throughput', 'in the steady state',
    (row) => [row.throughput ? `${row.throughput.toPrecision(4)} ${row.throughput_unit}` : '–']],
  ['peak memory', 'the fullest device', peak],
  ['links add', '1 − step time with free links / step time',
    (row) => [percent(row.exposed_communication_fraction)]],
];

/**
 * @param {HTMLElement} host
 * @param {{ row?: any, error?: { message: string } }[]} runs
 */
export function show_figures(host, runs) {
  const rows = runs.map((run) => run.row);
  const base = rows[0]?.step_time_ps;
  const shown = rows.some((row) => row?.mfu)
    ? [figures[0], ...of_language_models, ...figures.filter(([words]) => ['bubble', 'peak memory'].includes(words))]
    : figures;
  const head = element('tr', {}, element('th', { scope: 'col' }, 'schedule'),
    ...shown.map(([words, about]) => element('th', { scope: 'col', title: about }, words)));
  const lines = runs.map((run, i) => {
    const row = run.row;
    if (!row) {
      return element('tr', { class: 'failed' }, element('th', { scope: 'row' }, 'AB'[i] ?? ''),
        element('td', { colspan: shown.length, class: 'error' }, run.error?.message ?? ''));
    }
    const cells = shown.map(([words, about, value]) => element('td',
      { title: about, 'data-figure': words }, value(row)[0]));
    if (i > 0 && base && row.step_time_ps) {
      const change = `${((row.step_time_ps / base - 1) * 100).toFixed(1).replace('-', '−')} %`;
      cells[0].append(` (${change})`);
    }
    shown.forEach(([, , value], k) => {
      const range = value(row)[1];
      if (range) cells[k].append(' ', element('span', { class: 'range' }, range));
    });
    cells[0].dataset.ps = String(row.step_time_ps ?? row.makespan_ps);
    return element('tr', {}, element('th', { scope: 'row', dir: 'auto' },
      row.schedule ?? row.file ?? ''), ...cells);
  });
  host.replaceChildren(element('table', { class: 'figures' },
    element('thead', {}, head), element('tbody', {}, ...lines)));
}
