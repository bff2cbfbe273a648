// Paragraphs: data { paragraphs: string[] }.
import { element } from './dom.js';

/** @type {import('./sections.js').SectionKind} */
export const section_text = {
  kind: 'text',
  render(section, host) {
    for (const paragraph of section.data.paragraphs) host.append(element('p', {}, paragraph));
  },
};
