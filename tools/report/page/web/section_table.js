// A table to sort and filter: data { columns: { title, definition, left, shown }[],
// rows: { id, note, cells: [text, value | null, exact][] }[], command: string[] | undefined }.
import { element } from './dom.js';

/** @typedef {[string, number | null, string]} Cell */

const shown_at_once = 500; // rows; the rest follow on demand
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
    /** @type {Map<any, HTMLElement>} made when they are first shown */
    const elements = new Map();
    let room = shown_at_once;

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
      room = shown_at_once;
      show();
    }

    const more = element('button', { type: 'button', class: 'more', onclick: () => {
      room += shown_at_once;
      show();
    } });

    /** @param {any} row */
    function element_of(row) {
      const made = elements.get(row) ?? row_element(row);
      elements.set(row, made);
      [...made.children].forEach((cell, i) => { /** @type {HTMLElement} */ (cell).hidden = hidden.has(i); });
      return made;
    }

    /** The rows that match, in order. @returns {any[]} */
    function matching() {
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
      return shown;
    }

    function show() {
      const shown = matching();
      body.replaceChildren(...shown.slice(0, room).map(element_of));
      more.hidden = shown.length <= room;
      more.textContent = `${Math.min(room, shown.length)} rows are shown: show ${shown_at_once} more`;
      count.textContent = shown.length === rows.length
        ? `${rows.length} rows` : `${shown.length} of ${rows.length} rows`;
      heads.forEach((/** @type {HTMLElement} */ head, /** @type {number} */ i) => {
        if (order?.column !== i) head.removeAttribute('aria-sort');
        else head.setAttribute('aria-sort', order.sign > 0 ? 'ascending' : 'descending');
        head.hidden = hidden.has(i);
      });
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
          element('thead', {}, element('tr', {}, ...heads)), body), more));
    show();
    document.addEventListener('stageline-row', (event) => {
      const id = /** @type {CustomEvent} */ (event).detail;
      const row = rows.find((/** @type {any} */ one) => one.id === id);
      if (!row) return;
      if (!matching().includes(row)) filter.value = '';
      room = Math.max(room, matching().indexOf(row) + 1);
      show();
      const made = element_of(row);
      body.querySelectorAll('.found').forEach((one) => one.classList.remove('found'));
      made.classList.add('found');
      made.scrollIntoView({ block: 'center', behavior: 'smooth' });
      made.focus({ preventScroll: true });
    });
  },
};
