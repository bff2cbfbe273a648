// Values over an axis, a curve each: data { x, y: { title, unit, whole }, lines: { value, words }[],
// series: { name, ink: number | null, points: { x, y: number | null, y_text, open }[] }[] }. Without
// an ink a curve is thin and grey; without y a point is a gap.
import {
  chart_frame, chart_legend, chart_mark, same_as_table, scale_of, x_axis, y_axis,
} from './charts.js';
import { svg_element } from './dom.js';
import { shortened } from './words.js';

const label_height = 15;

/** @param {any} one @param {any} x @param {any} y */
function curve_path(one, x, y) {
  let joined = false;
  return one.points.map((/** @type {any} */ point) => {
    if (point.y === null) {
      joined = false;
      return '';
    }
    const to = `${joined ? 'L' : 'M'}${x.at(point.x).toFixed(2)} ${y.at(point.y).toFixed(2)}`;
    joined = true;
    return to;
  }).join('');
}

/** @param {any} axis @param {any} point */
function at_words(axis, point) {
  return `${point.x} ${axis.title}`;
}

/** @param {SVGElement} svg @param {number} width @param {any} data */
function draw_curves(svg, width, data) {
  const left = 48;
  const right = width - 150;
  const top = 34;
  const bottom = 360;
  const known = data.series.flatMap((/** @type {any} */ one) => one.points)
    .filter((/** @type {any} */ point) => point.y !== null);
  const xs = known.map((/** @type {any} */ point) => point.x);
  const ys = known.map((/** @type {any} */ point) => point.y);
  const x = scale_of({ from: Math.min(...xs), to: Math.max(...xs), unit: data.x.unit, begin: left,
    end: right });
  if (data.x.whole) x.ticks = x.ticks.filter(Number.isInteger);
  if (data.x.whole) x.digits = 0;
  const y = scale_of({ from: 0, to: Math.max(...ys) * 1.05, unit: data.y.unit, begin: bottom,
    end: top, spacing: 45 });
  x_axis(svg, x, { top, bottom, left, right, ...data.x });
  y_axis(svg, y, { top, left, right, ...data.y });
  for (const line of data.lines) {
    const at = y.at(line.value);
    svg.append(svg_element('line', { class: 'bound', x1: left, x2: right, y1: at, y2: at }),
      svg_element('text', { class: 'tick', x: right, y: at + 14, 'text-anchor': 'end' },
        line.words));
  }
  const grey_first = [...data.series].sort((a, b) => Number(a.ink !== null) - Number(b.ink !== null));
  for (const one of grey_first) {
    svg.append(svg_element('path', { d: curve_path(one, x, y),
      class: one.ink === null ? 'curve faint' : `curve ink-${one.ink}` }));
  }
  for (const one of data.series) {
    for (const point of one.points) {
      if (point.y === null) continue;
      const look = one.ink === null ? 'dot faint' : point.open ? `point ink-${one.ink}`
        : `dot fill-${one.ink}`;
      const place = { cx: x.at(point.x), cy: y.at(point.y) };
      svg.append(chart_mark([one.name, `${at_words(data.x, point)} · ${point.y_text}`,
        point.open ? 'does not fit into memory' : ''], null,
      svg_element('circle', { class: 'hit', ...place, r: 9 }),
      svg_element('circle', { class: look, ...place, r: one.ink === null ? 2 : 4 })));
    }
  }
  // Names at the ends of the curves, the highest first, none over another.
  const ends = data.series.filter((/** @type {any} */ one) => one.ink !== null)
    .map((/** @type {any} */ one) => {
      const last = one.points.filter((/** @type {any} */ point) => point.y !== null).at(-1);
      return last ? { one, x: x.at(last.x), y: y.at(last.y) } : null;
    }).filter(Boolean).sort((/** @type {any} */ a, /** @type {any} */ b) => a.y - b.y);
  let free = top - label_height;
  for (const { one, x: at, y: height } of ends) {
    const line = Math.max(height, free + label_height);
    free = line;
    svg.append(svg_element('path', { class: 'tie', d: `M${at + 5} ${height}L${right + 10} ${line}` }),
      svg_element('text', { class: 'name', x: right + 14, y: line + 4 }, shortened(one.name, 20)));
  }
  return Math.max(bottom + 42, free + label_height);
}

/** @type {import('./sections.js').SectionKind} */
export const section_curves = {
  kind: 'curves',
  render(section, host) {
    const { data } = section;
    const inked = data.series.filter((/** @type {any} */ one) => one.ink !== null);
    const items = inked.map((/** @type {any} */ one) =>
      ({ look: `line ink-${one.ink}`, words: shortened(one.name, 60) }));
    if (inked.length < data.series.length) {
      items.push({ look: 'line faint', words: `${data.series.length - inked.length} more: the table has all` });
    }
    if (data.series.some((/** @type {any} */ one) => one.points.some(
      (/** @type {any} */ point) => point.open))) {
      items.push({ look: 'point-no', words: 'hollow: does not fit into memory' });
    }
    chart_legend(host, items);
    chart_frame(host, section.title, (svg, width) => draw_curves(svg, width, data));
    const xs = [...new Set(data.series.flatMap((/** @type {any} */ one) =>
      one.points.map((/** @type {any} */ point) => point.x)))].sort((a, b) => a - b);
    same_as_table(host, `${data.y.title} by ${data.x.title}`,
      ['', ...xs.map((value) => String(value))],
      data.series.map((/** @type {any} */ one) => [one.name, ...xs.map((value) =>
        one.points.find((/** @type {any} */ point) => point.x === value)?.y_text ?? '')]));
  },
};
