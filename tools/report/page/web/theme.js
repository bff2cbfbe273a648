// Light or dark: as the system says, as the reader chose, and light on paper.

/** @typedef {'light' | 'dark'} Theme */

const dark_system = matchMedia('(prefers-color-scheme: dark)');
const on_paper = matchMedia('print');

/** What sections know of the page around them. */
export class PageContext {
  constructor() {
    /** @type {'auto' | Theme} */
    this.chosen = 'auto';
    this.printing = false;
    /** @type {(() => void)[]} */
    this.listeners = [];
    this.status = '';
    dark_system.addEventListener('change', () => this.apply());
    on_paper.addEventListener('change', () => this.print(on_paper.matches));
    addEventListener('beforeprint', () => this.print(true));
    addEventListener('afterprint', () => this.print(false));
  }

  /** The theme that is shown. @returns {Theme} */
  get theme() {
    if (this.printing) return 'light';
    if (this.chosen !== 'auto') return this.chosen;
    return dark_system.matches ? 'dark' : 'light';
  }

  /** Called after each change of the theme: what is drawn by script is drawn again.
   * @param {() => void} listener */
  on_theme(listener) {
    this.listeners.push(listener);
  }

  /** A colour of the table.
   * @param {import('./palette.js').Paint} paint */
  colour(paint) {
    return paint[this.theme];
  }

  /** A colour of page.css: `page.css_colour('text')` is var(--text).
   * @param {string} name */
  css_colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  }

  /** @param {'auto' | Theme} theme */
  choose(theme) {
    this.chosen = theme;
    this.apply();
  }

  /** @param {boolean} printing */
  print(printing) {
    if (this.printing === printing) return;
    this.printing = printing;
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.theme;
    for (const listener of this.listeners) listener();
  }
}
