// Lays the page out: head, sections in their order, footnotes.
import { read_report } from './data.js';
import { element } from './dom.js';
import { section_kinds } from './sections.js';
import { PageContext } from './theme.js';

/** @param {PageContext} page */
function theme_switch(page) {
  const select = /** @type {HTMLSelectElement} */ (element('select', { 'aria-label': 'theme' },
    ...['auto', 'light', 'dark'].map((name) => element('option', { value: name }, name))));
  select.addEventListener('change', () => page.choose(/** @type {any} */ (select.value)));
  return element('label', { class: 'switch' }, 'theme ', select);
}

/**
 * @param {import('./data.js').Report} report
 * @param {PageContext} page
 */
function lay_out(report, page) {
  const main = element('main', { id: 'main' });
  document.body.append(
    element('header', {},
      element('div', { class: 'titles' },
        element('h1', { dir: 'auto' }, report.title),
        report.subtitle ? element('p', { class: 'subtitle', dir: 'auto' }, report.subtitle) : null),
      theme_switch(page)),
    main,
    element('footer', {},
      ...report.footnotes.map((note) => element('p', { dir: 'auto' }, note)),
      element('p', { class: 'made' }, `Stageline ${report.version}`)));
  report.sections.forEach((section, number) => {
    const heading = section.title
      ? element('h2', { id: `section-${number}`, dir: 'auto' }, section.title) : null;
    const host = element('section',
      { class: `section-${section.kind}`, id: `part-${number}`, 'aria-labelledby': heading && heading.id }, heading);
    main.append(host);
    const kind = section_kinds.find((one) => one.kind === section.kind);
    if (!kind) throw new Error(`this page has no section "${section.kind}"`);
    kind.render(section, host, page);
  });
}

async function start() {
  const page = new PageContext();
  page.apply();
  const packed = /** @type {HTMLElement} */ (document.getElementById('stageline-data'));
  try {
    const report = await read_report(packed.textContent ?? '');
    packed.remove();
    performance.mark('stageline-read');
    lay_out(report, page);
    performance.mark('stageline-laid-out');
    document.documentElement.dataset.ready = 'true';
  } catch (error) {
    document.body.append(element('p', { class: 'failure', role: 'alert' },
      `This report cannot be shown: ${error instanceof Error ? error.message : error}. It needs ` +
      'Chromium 80, Firefox 113 or Safari 16.4, or later.'));
    throw error;
  }
}

start();
