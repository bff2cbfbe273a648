// From the ideal step to the real one: data { label, waterfalls: string[], sentence, definitions,
// rows: { name, bars: { from, to, words, tooltip }[] }[] }; one or two waterfalls.
import {
  bar_height, chart_frame, chart_hatch, chart_legend, chart_mark, same_as_table, scale_of,
  x_axis,
} from './charts.js';
import { element, svg_element } from './dom.js';


/** @param {SVGElement} svg @param {number} width @param {any} data */
function draw_falls(svg, width, data) {
  const { rows } = data;
  const count = data.waterfalls.length;
  const row_height = count * (bar_height + 3) + 10;
  const bars = rows.flatMap((/** @type {any} */ row) => row.bars);
  const ends = bars.flatMap((/** @type {any} */ bar) => [bar.from, bar.to]);
  const left = Math.min(190, width * 0.3);
  const right = width - 110;
  const bottom = 8 + rows.length * row_height;
  const scale = scale_of({ from: Math.min(0, ...ends), to: Math.max(...ends), unit: data.label,
    begin: left, end: right });
  const lines = chart_hatch(svg, 'hatch-second');
  x_axis(svg, scale, { top: 4, bottom, left, right, title: 'time' });
  rows.forEach((/** @type {any} */ row, /** @type {number} */ i) => {
    const top = 8 + i * row_height + 5;
    const whole = i === 0 || i === rows.length - 1;
    svg.append(svg_element('text', { class: whole ? 'name strong' : 'name', x: left - 8,
      y: top + row_height / 2 - 1, 'text-anchor': 'end' },
    data.definitions[row.name] ? svg_element('title', {}, data.definitions[row.name]) : null,
    row.name));
    row.bars.forEach((/** @type {any} */ bar, /** @type {number} */ k) => {
      const y = top + k * (bar_height + 3);
      const from = scale.at(Math.min(bar.from, bar.to));
      const to = scale.at(Math.max(bar.from, bar.to));
      const style = whole ? 'whole' : bar.to < bar.from ? 'gain' : 'loss';
      const box = { x: from, y, width: Math.max(1, to - from), height: bar_height };
      const next = rows[i + 1];
      svg.append(chart_mark([bar.tooltip, data.definitions[row.name] ?? ''], null,
        svg_element('rect', { class: 'hit', x: left, y, width: right - left, height: bar_height }),
        svg_element('rect', { class: style, ...box }),
        k === 1 ? svg_element('rect', { fill: lines, ...box }) : null,
        next ? svg_element('line', { class: 'tie', x1: scale.at(bar.to), x2: scale.at(bar.to),
          y1: y + bar_height, y2: y + row_height }) : null,
        svg_element('text', { class: 'value', x: to + 6, y: y + 12 }, bar.words)));
    });
  });
  return bottom + 42;
}

/** @type {import('./sections.js').SectionKind} */
export const section_waterfall = {
  kind: 'waterfall',
  render(section, host) {
    const data = section.data;
    if (data.sentence) host.append(element('p', { class: 'advice' }, data.sentence));
    if (data.waterfalls.length > 1) {
      chart_legend(host, [{ look: 'whole', words: data.waterfalls[0] },
        { look: 'second', words: data.waterfalls[1] }]);
    }
    chart_frame(host, section.title, (svg, width) => draw_falls(svg, width, data));
    same_as_table(host, section.title, ['cause', ...data.waterfalls],
      data.rows.map((/** @type {any} */ row) => [row.name,
        ...row.bars.map((/** @type {any} */ bar) => bar.words)]));
  },
};
