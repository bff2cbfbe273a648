// The tools above the rows and the legend below.
import { element } from './dom.js';
import { kind_words } from './diagram_details.js';
import { idle_paints, memory_paints, op_paints, stream_paints } from './palette.js';

/** @param {string} words @param {string} help @param {() => void} act */
export function tool(words, help, act) {
  return element('button', { type: 'button', title: help, onclick: act }, words);
}

/**
 * @param {string} words
 * @param {[string, string][]} options value and text
 * @param {(value: string) => void} act
 */
export function chooser(words, options, act) {
  const select = /** @type {HTMLSelectElement} */ (element('select', {},
    ...options.map(([value, text]) => element('option', { value, dir: 'auto' }, text))));
  select.addEventListener('change', () => act(select.value));
  return { label: element('label', {}, `${words} `, select), select };
}

/**
 * Swatches with their words.
 * @param {HTMLElement} host
 * @param {import('./theme.js').PageContext} page
 * @param {[string, import('./palette.js').Paint][]} entries
 */
function swatches(host, page, entries) {
  for (const [words, paint] of entries) {
    const swatch = element('span', { class: 'swatch', 'aria-hidden': true });
    swatch.style.background = paint[page.theme];
    host.append(element('span', { class: 'entry' }, swatch, words));
  }
}

/**
 * @param {HTMLElement} host
 * @param {import('./theme.js').PageContext} page
 * @param {Set<string>} kinds
 * @param {string[] | null} causes of idle time, where these are shown
 */
export function show_legend(host, page, kinds, causes) {
  host.replaceChildren();
  if (causes) {
    swatches(host, page, causes.map((cause) => [`idle: ${idle_paints[cause].words}`,
      idle_paints[cause]]));
    return;
  }
  /** @type {Map<string, [string, import('./palette.js').Paint]>} */
  const entries = new Map();
  for (const table of [op_paints, stream_paints]) {
    for (const [kind, paint] of Object.entries(table)) {
      if (kinds.has(kind)) entries.set(paint.words, [`${kind} ${kind_words(kind)}`, paint]);
    }
  }
  swatches(host, page, [...entries].map(([words, [kind, paint]]) =>
    [kind.includes('_') ? words : kind, paint]));
}

/**
 * @param {HTMLElement} host
 * @param {import('./theme.js').PageContext} page
 * @param {string[]} categories
 */
export function show_memory_legend(host, page, categories) {
  host.replaceChildren();
  swatches(host, page, categories.map((name) => [memory_paints[name].words, memory_paints[name]]));
}
