// One number against another: data { x, y: { title, definition, unit }, series: { name, look,
// points: { id, name, x, y, x_text, y_text, fits, front, note, flags }[] }[], limit and bound:
// { value, text, words } | null, front_words }.
import {
  chart_frame, chart_legend, chart_mark, reveal_row, same_as_table, scale_of, x_axis,
  y_axis,
} from './charts.js';
import { svg_element } from './dom.js';
import { shortened } from './words.js';

const most_linear = 6;   // the largest value over the least, on a linear axis
const far_above = 1.6;   // a limit so many times the largest value is not drawn

/** @param {string} look @param {number} x @param {number} y @param {string} style */
function symbol(look, x, y, style) {
  return look === 'diamond'
    ? svg_element('path', { class: style, d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z` })
    : svg_element('circle', { class: style, cx: x, cy: y, r: 5.5 });
}

/** @param {any} point */
function scatter_lines(point) {
  return [point.name + (point.note ? ` · ${point.note}` : ''),
    `${point.x_text} · ${point.y_text}${point.fits === 'no' ? ' · does not fit' : ''}`,
    point.front ? 'on the Pareto front' : '', point.flags];
}

/** The range of an axis with room at its ends; from 0 unless values are far apart or above it.
 * @param {number[]} values @param {boolean} log */
function range_of(values, log) {
  const least = Math.min(...values);
  const most = Math.max(...values);
  if (log) return { from: least / 1.3, to: most * 1.3 };
  const room = (most - least || most) * 0.08;
  return { from: least > most / 2 ? Math.max(0, least - room) : 0, to: most + room };
}

/** @param {number[]} values */
function is_log(values) {
  const least = Math.min(...values);
  return least > 0 && Math.max(...values) / least > most_linear;
}

/** @param {{ title: string }} axis @param {boolean} log */
function axis_words(axis, log) {
  return log ? { ...axis, title: `${axis.title} (logarithmic)` } : axis;
}

/** Which label is placed first. @param {any} point */
function rank_of(point) {
  return point.note ? 0 : point.front ? 1 : point.fits === 'no' ? 3 : 2;
}

/** @param {SVGElement} svg @param {number} width @param {any} data */
function draw_points(svg, width, data) {
  const points = data.series.flatMap((/** @type {any} */ one) => one.points);
  const left = 64;
  const right = width - 24;
  const top = 34;
  const bottom = 360;
  const xs = points.map((/** @type {any} */ point) => point.x);
  const ys = points.map((/** @type {any} */ point) => point.y);
  const limit = data.limit && data.limit.value <= far_above * Math.max(...ys) ? data.limit : null;
  const x_log = is_log(xs);
  const y_log = is_log(ys);
  const in_x = data.bound && data.bound.value > Math.max(...xs) / 4 ? [data.bound.value, ...xs] : xs;
  const bound = in_x === xs ? null : data.bound;
  const x = scale_of({ ...range_of(in_x, x_log), unit: data.x.unit, begin: left, end: right,
    log: x_log });
  const y = scale_of({ ...range_of(limit ? [limit.value, ...ys] : ys, y_log), unit: data.y.unit,
    begin: bottom, end: top, log: y_log, spacing: 45 });
  x_axis(svg, x, { top, bottom, left, right, ...axis_words(data.x, x_log) });
  y_axis(svg, y, { top, left, right, ...axis_words(data.y, y_log) });
  if (limit) {
    svg.append(svg_element('line', { class: 'limit', x1: left, x2: right, y1: y.at(limit.value),
      y2: y.at(limit.value) }),
    svg_element('text', { class: 'bad-text', x: right, y: y.at(limit.value) - 6,
      'text-anchor': 'end' }, limit.words));
  }
  if (bound) {
    const at = x.at(bound.value);
    svg.append(svg_element('line', { class: 'bound', x1: at, x2: at, y1: top, y2: bottom }),
      svg_element('text', { class: 'tick', x: at + 6, y: bottom - 8 }, bound.words));
  }
  for (const one of data.series) {
    const front = one.points.filter((/** @type {any} */ point) => point.front)
      .sort((/** @type {any} */ a, /** @type {any} */ b) => a.x - b.x);
    if (front.length < 2) continue;
    let path = '';
    front.forEach((/** @type {any} */ point, /** @type {number} */ i) => {
      path += i === 0 ? `M${x.at(point.x)} ${y.at(point.y)}` : `H${x.at(point.x)}V${y.at(point.y)}`;
    });
    svg.append(svg_element('path', { class: 'front', d: path }));
  }
  /** @type {{ x: number, y: number, to: number }[]} */
  const labels = points.map((/** @type {any} */ point) => ({
    x: x.at(point.x) - 8, y: y.at(point.y), to: x.at(point.x) + 8 }));
  for (const one of data.series) {
    for (const point of one.points) {
      const px = x.at(point.x);
      const py = y.at(point.y);
      const style = point.fits === 'no' ? 'point no' : point.front ? 'point best' : 'point';
      svg.append(chart_mark(scatter_lines(point), () => reveal_row(point.id),
        svg_element('circle', { class: 'hit', cx: px, cy: py, r: 12 }),
        point.note ? svg_element('circle', { class: 'halo', cx: px, cy: py, r: 10 }) : null,
        symbol(one.look, px, py, style)));
    }
  }
  const by_rank = [...points].sort((a, b) => rank_of(a) - rank_of(b));
  for (const point of by_rank) {
    const px = x.at(point.x);
    const py = y.at(point.y);
    const text = shortened(point.name, 32);
    const wide = [...text].length * 7;
    const place = [[px + 11, py - 8], [px + 11, py + 16], [px - 11 - wide, py - 8],
      [px - 11 - wide, py + 16], [px + 11, py + 4], [px - 11 - wide, py + 4]]
      .find(([at, height]) => at > left && at + wide < right && height > top &&
        height < bottom - 4 && labels.every((other) => at > other.to || at + wide < other.x ||
          Math.abs(other.y - height + 4) > 13));
    if (!place) continue;
    labels.push({ x: place[0], y: place[1] - 4, to: place[0] + wide });
    svg.append(svg_element('text', { x: place[0], y: place[1],
      class: point.note ? 'name strong' : point.front ? 'name' : 'name dim' }, text));
  }
  return bottom + 42;
}

/** @type {import('./sections.js').SectionKind} */
export const section_scatter = {
  kind: 'scatter',
  render(section, host) {
    const data = section.data;
    const points = data.series.flatMap((/** @type {any} */ one) => one.points);
    const items = data.series.length < 2 ? [] : data.series.map((/** @type {any} */ one) => ({
      look: one.look, words: one.name }));
    items.push({ look: 'front', words: data.front_words });
    if (points.some((/** @type {any} */ point) => point.fits === 'no')) {
      items.push({ look: 'point-no', words: 'does not fit into memory' });
    }
    chart_legend(host, items);
    chart_frame(host, section.title, (svg, width) => draw_points(svg, width, data));
    same_as_table(host, section.title,
      ['', data.x.title, data.y.title, 'fits', 'on the front', 'command'],
      points.map((/** @type {any} */ point) => [point.name, point.x_text, point.y_text, point.fits,
        point.front ? 'yes' : 'no', point.flags]));
  },
};
