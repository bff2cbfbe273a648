// The step over many scenarios: data { unit, bins: { from, to }, series: { name, nominal, mean, p5,
// p50, p95, p99: { value, text }, quantiles: number[], counts: number[], scenarios }[] }.
import {
  chart_frame, chart_legend, chart_mark, same_as_table, scale_of, x_axis, y_axis,
} from './charts.js';
import { element, svg_element } from './dom.js';
import { shortened } from './words.js';

const most_series = 6;  // drawn; all are in the table
const named_quantiles = ['p50', 'p95'];

/** @param {any} one */
function distribution_lines(one) {
  return [one.name, `nominal ${one.nominal.text} · mean ${one.mean.text}`,
    `p5 ${one.p5.text} · p50 ${one.p50.text} · p95 ${one.p95.text} · p99 ${one.p99.text}`,
    `${one.scenarios} scenarios`];
}

/** The share of the steps that take at most so long.
 * @param {any} one @param {any} x @param {any} y */
function cumulative_path(one, x, y) {
  const last = one.quantiles.length - 1;
  return one.quantiles.map((/** @type {number} */ value, /** @type {number} */ i) =>
    `${i === 0 ? 'M' : 'L'}${x.at(value).toFixed(2)} ${y.at(100 * i / last).toFixed(2)}`).join('');
}

/** The share of the steps in each bin, as a stair.
 * @param {any} one @param {any} bins @param {any} x @param {any} y */
function histogram_path(one, bins, x, y) {
  const wide = (bins.to - bins.from) / one.counts.length;
  const stairs = one.counts.map((/** @type {number} */ count, /** @type {number} */ i) =>
    `V${y.at(100 * count / one.scenarios).toFixed(2)}` +
    `H${x.at(bins.from + (i + 1) * wide).toFixed(2)}`).join('');
  return `M${x.at(bins.from)} ${y.at(0)}${stairs}V${y.at(0)}Z`;
}

/** @param {SVGElement} svg @param {number} width @param {any} data @param {boolean} cumulative */
function draw_distributions(svg, width, data, cumulative) {
  const drawn = data.series.slice(0, most_series);
  const left = 56;
  const right = width - 24;
  const top = 34;
  const bottom = 320;
  const most = cumulative ? 100 : Math.max(...drawn.flatMap((/** @type {any} */ one) =>
    one.counts.map((/** @type {number} */ count) => 100 * count / one.scenarios)));
  const x = scale_of({ from: data.bins.from, to: data.bins.to, unit: data.unit, begin: left,
    end: right });
  const y = scale_of({ from: 0, to: most * 1.02, unit: '%', begin: bottom, end: top, spacing: 45 });
  x_axis(svg, x, { top, bottom, left, right, title: 'step' });
  y_axis(svg, y, { top, left, right,
    title: cumulative ? 'steps that take at most so long' : 'steps in each interval' });
  drawn.forEach((/** @type {any} */ one, /** @type {number} */ i) => {
    const path = cumulative ? cumulative_path(one, x, y) : histogram_path(one, data.bins, x, y);
    const quantiles = named_quantiles.map((name) => {
      const at = x.at(one[name].value);
      const height = cumulative ? y.at(Number(name.slice(1))) : bottom;
      return svg_element('g', {},
        svg_element('line', { class: `quantile ink-${i}`, x1: at, x2: at, y1: height, y2: bottom }),
        cumulative ? svg_element('circle', { class: `dot fill-${i}`, cx: at, cy: height, r: 4 })
          : svg_element('path', { class: `dot fill-${i}`, d: `M${at} ${bottom - 1}l-5 9h10z` }),
        cumulative && drawn.length === 1 ? svg_element('text', { class: 'name', x: at + 8,
          y: height + 14 }, `${name} ${one[name].text}`) : null);
    });
    svg.append(chart_mark(distribution_lines(one), null,
      svg_element('path', { class: `hit-line`, d: path }),
      svg_element('path', { class: cumulative ? `curve ink-${i}` : `curve area ink-${i}`, d: path }),
      ...quantiles));
  });
  return bottom + 42;
}

/** @type {import('./sections.js').SectionKind} */
export const section_distribution = {
  kind: 'distribution',
  render(section, host) {
    const { data } = section;
    let cumulative = true;
    const buttons = [true, false].map((which) => element('button', { type: 'button',
      'aria-pressed': String(which), onclick: () => {
        cumulative = which;
        buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(which === !i)));
        frame.redraw();
      } }, which ? 'Cumulative' : 'Histogram'));
    host.append(element('div', { class: 'controls', role: 'group', 'aria-label': 'Form' },
      ...buttons));
    chart_legend(host, data.series.slice(0, most_series).map(
      (/** @type {any} */ one, /** @type {number} */ i) =>
        ({ look: `line ink-${i}`, words: shortened(one.name, 60) })));
    const frame = chart_frame(host, section.title,
      (svg, width) => draw_distributions(svg, width, data, cumulative));
    if (data.series.length > most_series) {
      host.append(element('p', { class: 'dim' },
        `The first ${most_series} of ${data.series.length} are drawn; the table has all.`));
    }
    same_as_table(host, section.title, ['schedule', 'nominal', 'mean', 'p5', 'p50', 'p95', 'p99'],
      data.series.map((/** @type {any} */ one) => [one.name, ...['nominal', 'mean', 'p5', 'p50',
        'p95', 'p99'].map((name) => one[name].text)]));
  },
};
