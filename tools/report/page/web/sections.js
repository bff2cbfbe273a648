// The kinds of sections: one file and one line each.
import { section_diagram } from './section_diagram.js';
import { section_text } from './section_text.js';

/**
 * `render` fills `host`, which is in the page already and has the heading.
 * @typedef {{ kind: string,
 *   render(section: import('./data.js').Section, host: HTMLElement,
 *          page: import('./theme.js').PageContext): void }} SectionKind
 */

/** @type {SectionKind[]} */
export const section_kinds = [
  section_diagram,
  section_text,
];
