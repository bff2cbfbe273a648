// The kinds of sections: one file and one line each.
import { section_curves } from './section_curves.js';
import { section_diagram } from './section_diagram.js';
import { section_distribution } from './section_distribution.js';
import { section_ranking } from './section_ranking.js';
import { section_scatter } from './section_scatter.js';
import { section_table } from './section_table.js';
import { section_text } from './section_text.js';
import { section_tornado } from './section_tornado.js';
import { section_waterfall } from './section_waterfall.js';

/**
 * `render` fills `host`, which is in the page already and has the heading.
 * @typedef {{ kind: string,
 *   render(section: import('./data.js').Section, host: HTMLElement,
 *          page: import('./theme.js').PageContext): void }} SectionKind
 */

/** @type {SectionKind[]} */
export const section_kinds = [
  section_text,
  section_curves,
  section_diagram,
  section_distribution,
  section_ranking,
  section_scatter,
  section_table,
  section_tornado,
  section_waterfall,
];
