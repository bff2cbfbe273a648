// Bars of the step, a row each: data { axis, definition, unit, busy_words, bound: { value, text,
// words, definition } | null, groups: { title, sentence, rows: { id, name, value, text, bubble,
// bubble_text, memory, fits, note, mark: { value, words } | null }[] }[] }.
import {
  bar_height, chart_frame, chart_hatch, chart_legend, chart_mark, reveal_row,
  same_as_table, scale_of, x_axis,
} from './charts.js';
import { element, svg_element } from './dom.js';
import { shortened } from './words.js';

const ranking_row = 26;
const fit_words = { yes: 'fits', no: 'does not fit', unknown: 'memory unknown' };

/** @param {any} row */
function ranking_lines(row) {
  return [row.name + (row.note ? ` · ${row.note}` : ''), `step ${row.text}`,
    `bubble ${row.bubble_text}`, row.mark ? row.mark.words : '',
    `peak memory ${row.memory}: ${fit_words[/** @type {'yes'} */ (row.fits)]}`];
}

/** @param {SVGElement} svg @param {number} width @param {any} data @param {any[]} rows */
function draw_bars(svg, width, data, rows) {
  const all = data.groups.flatMap((/** @type {any} */ group) => group.rows);
  const values = all.flatMap((/** @type {any} */ row) => [row.value, row.mark?.value ?? 0]);
  const most = Math.max(...values, data.bound?.value ?? 0);
  const letters = Math.max(
    ...all.map((/** @type {any} */ row) => Math.min(28, [...row.name].length)));
  const left = Math.min(width * 0.3, letters * 7.4 + 14);
  const right = width - 170;
  const bottom = 8 + rows.length * ranking_row;
  const scale = scale_of({ from: 0, to: most, unit: data.unit, begin: left, end: right });
  const lines = chart_hatch(svg, 'hatch-bad');
  x_axis(svg, scale, { top: 4, bottom, left, right, title: data.axis,
    definition: data.definition });
  rows.forEach((row, i) => {
    const y = 8 + i * ranking_row + (ranking_row - bar_height) / 2;
    const end = scale.at(row.value);
    const busy = scale.at(row.value * (1 - row.bubble));
    const text_y = y + 13;
    svg.append(chart_mark(ranking_lines(row), () => reveal_row(row.id),
      svg_element('rect', { class: 'hit', x: 0, y: y - 4, width, height: ranking_row }),
      svg_element('rect', { class: 'idle', x: left, y, width: Math.max(0, end - left),
        height: bar_height }),
      svg_element('rect', { class: row.fits === 'no' ? 'busy pale' : 'busy', x: left, y,
        width: Math.max(0, busy - left), height: bar_height }),
      row.fits === 'no' ? svg_element('rect', { fill: lines, x: left, y,
        width: Math.max(0, end - left), height: bar_height }) : null,
      row.mark ? svg_element('line', { class: 'whisker', x1: scale.at(row.mark.value),
        x2: scale.at(row.mark.value), y1: y - 2, y2: y + bar_height + 2 }) : null),
    svg_element('text', { class: row.note ? 'name strong' : 'name', x: left - 8, y: text_y,
        'text-anchor': 'end' }, shortened(row.name, Math.floor((left - 14) / 7.2))),
    svg_element('text', { class: 'value', y: text_y,
        x: Math.max(end, row.mark ? scale.at(row.mark.value) : 0) + 8 },
        row.text, svg_element('tspan', { class: 'dim' }, ` · ${row.bubble_text}`,
          row.note ? ` · ${row.note}` : '')));
  });
  if (data.bound) {
    const x = scale.at(data.bound.value);
    svg.append(svg_element('line', { class: 'bound', x1: x, x2: x, y1: 4, y2: bottom }));
  }
  return bottom + 42;
}

/** @type {import('./sections.js').SectionKind} */
export const section_ranking = {
  kind: 'ranking',
  render(section, host) {
    const data = section.data;
    const all = data.groups.flatMap((/** @type {any} */ group) => group.rows);
    const items = [{ look: 'busy', words: data.busy_words }, { look: 'idle', words: 'bubble' }];
    if (all.some((/** @type {any} */ row) => row.fits === 'no')) {
      items.push({ look: 'bad', words: 'does not fit into memory' });
    }
    const marked = all.find((/** @type {any} */ row) => row.mark);
    if (marked) items.push({ look: 'whisker', words: data.mark_words });
    if (data.bound) items.push({ look: 'bound', words: data.bound.words });
    for (const group of data.groups) {
      if (group.title) host.append(element('h3', {}, group.title));
      for (const sentence of group.sentences) {
        host.append(element('p', { class: 'advice' }, sentence));
      }
      if (group.rows.length === 0) continue;
      if (group === data.groups[0]) chart_legend(host, items);
      chart_frame(host, `${section.title}, ${group.title}`.replace(/, $/, ''),
        (svg, width) => draw_bars(svg, width, data, group.rows));
    }
    if (data.bound) host.append(element('p', { class: 'dim' }, data.bound.definition));
    same_as_table(host, section.title, ['schedule', 'step', 'bubble', 'peak memory', 'fits', 'note'],
      all.map((/** @type {any} */ row) => [row.name, row.text, row.bubble_text, row.memory, row.fits,
        row.note]));
  },
};
