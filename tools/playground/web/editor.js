// A text field that underlines places in its text: the field lies over a copy of the text, whose
// words carry the marks.
import { element } from '../../report/page/web/dom.js';

/**
 * A place, by line and column from 1; without a column the whole line.
 * @typedef {{ line: number, column?: number, severity: string, message: string }} Mark
 */

/**
 * The marked stretches of one line, first and behind the last letter.
 * @param {string} line
 * @param {Mark[]} marks
 */
function stretches(line, marks) {
  return marks.map((mark) => {
    const from = mark.column ? Math.min(mark.column - 1, line.length) : 0;
    const rest = line.slice(from);
    const word = mark.column ? (/^\S+/.exec(rest)?.[0].length ?? 0) : rest.length;
    return { from, to: from + Math.max(word, 1), mark };
  }).sort((one, other) => one.from - other.from || one.to - other.to);
}

export class Editor {
  /**
   * @param {HTMLElement} host
   * @param {(text: string) => void} changed
   */
  constructor(host, changed) {
    this.backdrop = element('pre', { class: 'backdrop', 'aria-hidden': 'true' });
    this.numbers = element('pre', { class: 'numbers', 'aria-hidden': 'true' });
    this.field = /** @type {HTMLTextAreaElement} */ (element('textarea', {
      class: 'program', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off',
      wrap: 'off', 'aria-label': 'program text', 'aria-describedby': 'findings',
    }));
    /** @type {Mark[]} */
    this.marks = [];
    this.field.addEventListener('input', () => {
      this.marks = [];
      this.draw();
      changed(this.field.value);
    });
    this.field.addEventListener('scroll', () => this.follow());
    host.append(element('div', { class: 'editor' }, this.numbers,
      element('div', { class: 'text' }, this.backdrop, this.field)));
  }

  get text() {
    return this.field.value;
  }

  /** @param {string} text */
  set text(text) {
    if (text === this.field.value) return;
    this.field.value = text;
    this.marks = [];
    this.draw();
  }

  /** @param {Mark[]} marks */
  mark(marks) {
    if (marks.length === 0 && this.marks.length === 0) return;
    this.marks = marks;
    this.draw();
  }

  /** Puts the caret there. @param {Mark} mark */
  go_to(mark) {
    const lines = this.field.value.split('\n');
    let at = 0;
    for (let i = 0; i + 1 < mark.line && i < lines.length; ++i) at += lines[i].length + 1;
    at += (mark.column ?? 1) - 1;
    this.field.focus();
    this.field.setSelectionRange(at, at);
    const height = parseFloat(getComputedStyle(this.field).lineHeight);
    this.field.scrollTop = Math.max(0, (mark.line - 3) * height);
  }

  follow() {
    this.backdrop.scrollTop = this.field.scrollTop;
    this.backdrop.scrollLeft = this.field.scrollLeft;
    this.numbers.scrollTop = this.field.scrollTop;
  }

  draw() {
    const lines = this.field.value.split('\n');
    this.backdrop.replaceChildren();
    lines.forEach((line, number) => {
      const marks = this.marks.filter((mark) => mark.line === number + 1);
      let at = 0;
      for (const { from, to, mark } of stretches(line, marks)) {
        if (from < at) continue;
        this.backdrop.append(line.slice(at, from), element('span',
          { class: `mark ${mark.severity}`, 'data-line': mark.line, 'data-column': from + 1 },
          line.slice(from, to) || ' '));
        at = to;
      }
      this.backdrop.append(line.slice(at) + '\n');
    });
    this.backdrop.append('\n');
    this.numbers.textContent =
      Array.from(lines, (_, number) => String(number + 1)).join('\n') + '\n\n';
    this.follow();
  }
}
