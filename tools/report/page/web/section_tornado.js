// How the step changes with each lever: data { label, sentence, bars: { name, faster, twice, slower,
// words }[] }, changes in percent; below 0 is better.
import {
  bar_height, chart_frame, chart_hatch, chart_legend, chart_mark, same_as_table,
  scale_of, x_axis,
} from './charts.js';
import { element, svg_element } from './dom.js';
import { shortened } from './words.js';

const tornado_row = 24;

/** @param {number} change */
function percent_text(change) {
  return `${change > 0 ? '+' : change < 0 ? '−' : ''}${Math.abs(change).toFixed(1)} %`;
}

/** @param {SVGElement} svg @param {number} width @param {any} data */
function draw_levers(svg, width, data) {
  const { bars } = data;
  const ends = bars.flatMap((/** @type {any} */ bar) => [bar.faster, bar.twice, bar.slower]);
  const letters = Math.max(...bars.map((/** @type {any} */ bar) => [...bar.name].length));
  const left = Math.min(width * 0.32, letters * 7.4 + 14);
  const right = width - 24;
  const bottom = 8 + bars.length * tornado_row;
  const scale = scale_of({ from: Math.min(0, ...ends), to: Math.max(0, ...ends), unit: '',
    begin: left, end: right });
  const lines = chart_hatch(svg, 'hatch-second');
  x_axis(svg, scale, { top: 4, bottom, left, right, title: data.label });
  bars.forEach((/** @type {any} */ bar, /** @type {number} */ i) => {
    const y = 8 + i * tornado_row + (tornado_row - bar_height) / 2;
    /** @param {number} change @param {Record<string, string>} look @param {number} inset */
    const box = (change, look, inset = 0) => {
      const zero = scale.at(0);
      const end = scale.at(change);
      return svg_element('rect', { ...look, x: Math.min(zero, end), y: y + inset,
        width: Math.abs(end - zero), height: bar_height - 2 * inset });
    };
    svg.append(chart_mark([bar.name, bar.words], null,
      svg_element('rect', { class: 'hit', x: 0, y: y - 4, width, height: tornado_row }),
      svg_element('text', { class: 'name', x: left - 8, y: y + 12, 'text-anchor': 'end' },
        shortened(bar.name, Math.floor((left - 14) / 7.2))),
      box(bar.twice, { class: 'twice' }), box(bar.faster, { class: 'gain' }),
      box(bar.slower, { class: 'loss' }, 2), box(bar.slower, { fill: lines }, 2)));
  });
  svg.append(svg_element('line', { class: 'zero', x1: scale.at(0), x2: scale.at(0), y1: 4,
    y2: bottom }));
  return bottom + 42;
}

/** @type {import('./sections.js').SectionKind} */
export const section_tornado = {
  kind: 'tornado',
  render(section, host) {
    const data = section.data;
    if (data.sentence) host.append(element('p', { class: 'advice' }, data.sentence));
    chart_legend(host, [{ look: 'gain', words: '10 % faster' }, { look: 'twice', words: 'twice as fast' },
      { look: 'loss second', words: '10 % slower' }]);
    chart_frame(host, section.title, (svg, width) => draw_levers(svg, width, data));
    same_as_table(host, section.title, ['what', '10 % faster', 'twice as fast', '10 % slower'],
      data.bars.map((/** @type {any} */ bar) => [bar.name, percent_text(bar.faster),
        percent_text(bar.twice), percent_text(bar.slower)]));
  },
};
