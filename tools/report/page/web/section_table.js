// A table to sort and filter: data { columns: { title, definition, left, shown }[],
// rows: { id, note, cells: [text, value | null, exact][] }[], command: string[] | undefined }.
import { element } from './dom.js';

/** @typedef {[string, number | null, string]} Cell */

let table_count = 0;

/** Least first; what is unknown comes last in both directions.
 * @param {Cell} a @param {Cell} b @param {number} sign */
function compare_cells(a, b, sign) {
  if (a[1] !== null || b[1] !== null) {
    if (a[1] === null) return 1;
    if (b[1] === null) return -1;
    return sign * (a[1] - b[1]);
  }
  return sign * a[0].localeCompare(b[0], 'en', { numeric: true });
}

/** @param {any} row */
function row_element(row) {
  return element('tr', { 'data-row': row.id, class: row.note ? 'noted' : null, tabindex: -1 },
    ...row.cells.map((/** @type {Cell} */ [text, value, exact], /** @type {number} */ i) => {
      const shown = i === 0 && row.note
        ? [text, ' ', element('span', { class: 'note' }, row.note)] : [text];
      return i === 0 ? element('th', { scope: 'row', dir: 'auto', title: exact || null }, ...shown)
        : element('td', { class: value === null ? null : 'number', dir: 'auto',
          title: exact || null, 'data-exact': exact || null }, ...shown);
    }));
}

/** Copies on a click, where the page may. @param {string} command */
export function command_line(command) {
  const copy = element('button', { type: 'button', onclick: async () => {
    try {
      await navigator.clipboard.writeText(command);
      copy.textContent = 'copied';
    } catch {
      getSelection()?.selectAllChildren(code);
      copy.textContent = 'selected';
    }
    setTimeout(() => { copy.textContent = 'copy'; }, 1500);
  } }, 'copy');
  const code = element('code', { dir: 'ltr' }, command);
  return element('div', { class: 'command' }, code, copy);
}

/** @type {import('./sections.js').SectionKind} */
export const section_table = {
  kind: 'table',
  render(section, host) {
    const { columns, rows } = section.data;
    const name = `table-${++table_count}`;
    /** @type {{ column: number, sign: number } | null} */
    let order = null;
    const hidden = new Set(
      columns.map((/** @type {any} */ one, /** @type {number} */ i) => (one.shown ? -1 : i)));
    const elements = new Map(rows.map((/** @type {any} */ row) => [row, row_element(row)]));

    const filter = /** @type {HTMLInputElement} */ (element('input', { type: 'search',
      placeholder: 'Filter rows', 'aria-label': `Filter the rows of ${section.title}` }));
    const count = element('span', { class: 'count', role: 'status' });
    const body = element('tbody');
    const heads = columns.map((/** @type {any} */ column, /** @type {number} */ i) => {
      const words = element('span', { id: `${name}-${i}`, class: 'unseen' }, column.definition);
      const button = element('button', { type: 'button', title: column.definition,
        'aria-describedby': column.definition ? `${name}-${i}` : null, onclick: () => sort(i) },
        column.title, element('span', { class: 'arrow', 'aria-hidden': 'true' }));
      return element('th', { scope: 'col', class: column.left ? null : 'number' }, button, words);
    });

    /** Up, down, and back to the order of the report. @param {number} column */
    function sort(column) {
      if (order === null || order.column !== column) order = { column, sign: 1 };
      else order = order.sign > 0 ? { column, sign: -1 } : null;
      show();
    }

    function show() {
      const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const shown = rows.filter((/** @type {any} */ row) => {
        const text = [row.note, ...row.cells.map((/** @type {Cell} */ cell) => cell[0])]
          .join(' ').toLowerCase();
        return wanted.every((word) => text.includes(word));
      });
      if (order) {
        const { column, sign } = order;
        shown.sort((/** @type {any} */ a, /** @type {any} */ b) =>
          compare_cells(a.cells[column], b.cells[column], sign));
      }
      body.replaceChildren(...shown.map((/** @type {any} */ row) => elements.get(row)));
      count.textContent = shown.length === rows.length
        ? `${rows.length} rows` : `${shown.length} of ${rows.length} rows`;
      heads.forEach((/** @type {HTMLElement} */ head, /** @type {number} */ i) => {
        if (order?.column !== i) head.removeAttribute('aria-sort');
        else head.setAttribute('aria-sort', order.sign > 0 ? 'ascending' : 'descending');
        head.hidden = hidden.has(i);
      });
      for (const row of elements.values()) {
        [...row.children].forEach((cell, i) => { cell.hidden = hidden.has(i); });
      }
    }

    const choices = columns.map((/** @type {any} */ column, /** @type {number} */ i) => {
      const box = /** @type {HTMLInputElement} */ (element('input', { type: 'checkbox',
        checked: column.shown, disabled: i === 0, onchange: () => {
          if (box.checked) hidden.delete(i);
          else hidden.add(i);
          show();
        } }));
      return element('label', { title: column.definition }, box, ' ', column.title);
    });
    filter.addEventListener('input', show);
    host.append(
      element('div', { class: 'controls' }, filter, count,
        element('details', { class: 'columns' }, element('summary', {}, 'Columns'),
          element('fieldset', {}, element('legend', { class: 'unseen' }, 'Columns'), ...choices))),
      element('div', { class: 'table-box', tabindex: 0, role: 'region',
        'aria-label': section.title },
        element('table', {}, element('caption', { class: 'unseen' }, section.title),
          element('thead', {}, element('tr', {}, ...heads)), body)));
    show();
    document.addEventListener('stageline-row', (event) => {
      const id = /** @type {CustomEvent} */ (event).detail;
      const row = rows.find((/** @type {any} */ one) => one.id === id);
      if (!row) return;
      if (!elements.get(row).isConnected) {
        filter.value = '';
        show();
      }
      body.querySelectorAll('.found').forEach((one) => one.classList.remove('found'));
      elements.get(row).classList.add('found');
      elements.get(row).scrollIntoView({ block: 'center', behavior: 'smooth' });
      elements.get(row).focus({ preventScroll: true });
    });
  },
};
