// What the charts share: units, scales and axes, hatches, the frame, marks for pointer and keys, the
// tip beside them, and the table that says the same.
import { element, svg_element } from './dom.js';

/**
 * Where to write a value: `at(value)` in pixels, and the values to label.
 * @typedef {{ at(value: number): number, ticks: number[], unit: string, factor: number,
 *   digits: number }} Scale
 */

const units_of = {
  ps: [['ps', 1], ['ns', 1e3], ['µs', 1e6], ['ms', 1e9], ['s', 1e12]],
  B: [['B', 1], ['kB', 1e3], ['MB', 1e6], ['GB', 1e9], ['TB', 1e12]],
};

/**
 * The largest unit in which `most` is at least 2.
 * @param {string} base a key of `units_of`, or a unit that stays
 * @param {number} most
 * @returns {[string, number]}
 */
function unit_for(base, most) {
  const known = /** @type {[string, number][]} */ (
    units_of[/** @type {keyof typeof units_of} */ (base)] ?? [[base, 1]]);
  return known.filter(([, factor]) => most >= 2 * factor).at(-1) ?? known[0];
}

/**
 * Round steps of 1, 2 or 5, at most so many.
 * @param {number} from @param {number} to @param {number} most
 */
function axis_ticks(from, to, most) {
  const span = to - from || 1;
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => span / one <= most) ?? span;
  const ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) ticks.push(i * step);
  return { ticks, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/**
 * @param {{ from: number, to: number, unit: string, begin: number, end: number, log?: boolean,
 *   spacing?: number }} wish `begin` and `end` in pixels; `spacing` of labels, at least
 * @returns {Scale}
 */
export function scale_of({ from, to, unit, begin, end, log = false, spacing = 80 }) {
  const [name, factor] = unit_for(unit, to);
  const most = Math.max(2, Math.floor(Math.abs(end - begin) / spacing));
  if (log) {
    const low = Math.log(from);
    const high = Math.log(to) - low || 1;
    const all = [1, 2, 5].flatMap((one) => Array.from({ length: 31 }, (_, i) => one * 10 ** (i - 10)))
      .sort((a, b) => a - b).filter((tick) => tick * factor >= from && tick * factor <= to);
    const every = Math.max(1, Math.ceil(all.length / most));
    return { at: (value) => begin + (Math.log(value) - low) / high * (end - begin),
      ticks: all.filter((_, i) => i % every === 0), unit: name, factor, digits: -1 };
  }
  const { ticks, digits } = axis_ticks(from / factor, to / factor, most);
  return { at: (value) => begin + (value - from) / (to - from || 1) * (end - begin),
    ticks, unit: name, factor, digits };
}

/** @param {Scale} scale @param {number} tick */
export function tick_text(scale, tick) {
  if (scale.digits < 0) return String(Number(tick.toPrecision(3)));
  return tick.toFixed(Math.min(6, scale.digits)).replace('-', '−');
}

/**
 * Labels and grid lines along the lower edge, from `top` to `bottom`, and the title of the axis.
 * @param {SVGElement} svg @param {Scale} scale
 * @param {{ top: number, bottom: number, left: number, right: number, title: string,
 *   definition?: string }} place
 */
export function x_axis(svg, scale, { top, bottom, left, right, title, definition }) {
  for (const tick of scale.ticks) {
    const x = scale.at(tick * scale.factor);
    if (x < left - 1 || x > right + 1) continue;
    svg.append(
      svg_element('line', { class: 'grid', x1: x, x2: x, y1: top, y2: bottom }),
      svg_element('text', { class: 'tick', x, y: bottom + 16, 'text-anchor': 'middle' },
        tick_text(scale, tick)));
  }
  svg.append(
    svg_element('line', { class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom }),
    svg_element('text', { class: 'label', x: right, y: bottom + 34, 'text-anchor': 'end' },
      definition ? svg_element('title', {}, definition) : null,
      scale.unit ? `${title}, ${scale.unit}` : title));
}

/** The same along the left edge.
 * @param {SVGElement} svg @param {Scale} scale
 * @param {{ top: number, left: number, right: number, title: string, definition?: string }} place */
export function y_axis(svg, scale, { top, left, right, title, definition }) {
  for (const tick of scale.ticks) {
    const y = scale.at(tick * scale.factor);
    svg.append(
      svg_element('line', { class: 'grid', x1: left, x2: right, y1: y, y2: y }),
      svg_element('text', { class: 'tick', x: left - 8, y: y + 4, 'text-anchor': 'end' },
        tick_text(scale, tick)));
  }
  svg.append(svg_element('text', { class: 'label', x: 0, y: top - 12 },
    definition ? svg_element('title', {}, definition) : null,
    scale.unit ? `${title}, ${scale.unit}` : title));
}

let hatch_count = 0;

/** A pattern of this document alone; returns its paint.
 * @param {SVGElement} svg @param {string} name class of its lines @returns {string} */
export function chart_hatch(svg, name) {
  const id = `hatch-${++hatch_count}`;
  svg.append(svg_element('defs', {}, svg_element('pattern',
    { id, width: 6, height: 6, patternUnits: 'userSpaceOnUse' },
    svg_element('path', { class: name, d: 'M-1 7L7-1M-1 1L1-1M5 7L7 5' }))));
  return `url(#${id})`;
}

/**
 * A chart as wide as its place, drawn again when that changes; `draw` returns the height.
 * @param {HTMLElement} host @param {string} label for who does not see it
 * @param {(svg: SVGElement, width: number) => number} draw
 */
export function chart_frame(host, label, draw) {
  const svg = svg_element('svg', { class: 'chart', role: 'group', 'aria-label': label });
  const box = element('div', { class: 'chart-box' }, svg);
  host.append(box);
  let width = 0;
  const redraw = (again = false) => {
    const now = Math.max(360, Math.floor(box.clientWidth));
    if (now === width && !again) return;
    width = now;
    svg.replaceChildren();
    const height = draw(svg, width);
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const first = svg.querySelector('.mark');
    if (first) first.setAttribute('tabindex', '0');
  };
  move_by_keys(svg);
  new ResizeObserver(() => redraw()).observe(box);
  redraw();
  return { redraw: () => redraw(true) };
}

/** One mark of the chart is in the order of Tab; arrows go on from it.
 * @param {SVGElement} svg */
function move_by_keys(svg) {
  svg.addEventListener('keydown', (event) => {
    const marks = /** @type {SVGElement[]} */ ([...svg.querySelectorAll('.mark')]);
    const at = marks.indexOf(/** @type {any} */ (document.activeElement));
    if (at < 0) return;
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0,
      End: marks.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      const next = marks[Math.min(Math.max(to, 0), marks.length - 1)];
      marks[at].setAttribute('tabindex', '-1');
      next.setAttribute('tabindex', '0');
      next.focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      marks[at].dispatchEvent(new MouseEvent('click', { bubbles: true }));
    }
  });
}

/** The height of a bar in pixels. */
export const bar_height = 16;

/** @type {HTMLElement | null} */
let chart_tip = null;

/** @param {string[]} lines @param {DOMRect} beside */
function show_tip(lines, beside) {
  chart_tip ??= document.body.appendChild(element('div', { class: 'chart-tip', 'aria-hidden': 'true' }));
  chart_tip.replaceChildren(...lines.map((line, i) =>
    element('div', { class: i === 0 ? 'chart-tip-name' : '', dir: 'auto' }, line)));
  chart_tip.hidden = false;
  const { width, height } = chart_tip.getBoundingClientRect();
  const x = Math.min(Math.max(8, beside.x + beside.width / 2 - width / 2), innerWidth - width - 8);
  const above = beside.y - height - 8;
  chart_tip.style.left = `${x}px`;
  chart_tip.style.top = `${above < 8 ? Math.min(beside.bottom + 8, innerHeight - height - 8) : above}px`;
}

function hide_tip() {
  if (chart_tip) chart_tip.hidden = true;
}
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') hide_tip();
});
// A mark that was reached by keys may have been scrolled to.
addEventListener('scroll', () => {
  const at = document.activeElement;
  if (at?.matches('.mark') && chart_tip && !chart_tip.hidden) at.dispatchEvent(new FocusEvent('focus'));
  else hide_tip();
}, { passive: true });

/**
 * A group that says its lines under the pointer, when it has the focus, and to a screen reader.
 * @param {string[]} lines @param {(() => void) | null} chosen on a click or Enter
 * @param {...(Node | null)} children
 */
export function chart_mark(lines, chosen, ...children) {
  const group = svg_element('g', { class: chosen ? 'mark chosen' : 'mark', tabindex: -1,
    role: chosen ? 'button' : 'img', 'aria-label': lines.filter(Boolean).join('; ') }, ...children);
  const show = () => show_tip(lines.filter(Boolean), group.getBoundingClientRect());
  group.addEventListener('pointerenter', show);
  group.addEventListener('focus', show);
  group.addEventListener('pointerleave', hide_tip);
  group.addEventListener('blur', hide_tip);
  if (chosen) group.addEventListener('click', chosen);
  return group;
}

/** Asks the table to show a row. @param {string} id */
export function reveal_row(id) {
  document.dispatchEvent(new CustomEvent('stageline-row', { detail: id }));
}

/**
 * The numbers of a chart as a table, behind a line to open it.
 * @param {HTMLElement} host @param {string} caption @param {string[]} heads @param {string[][]} rows
 */
export function same_as_table(host, caption, heads, rows) {
  host.append(element('details', { class: 'same' }, element('summary', {}, 'The same as a table'),
    element('div', { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': caption },
      element('table', {}, element('caption', {}, caption),
        element('thead', {}, element('tr', {},
          ...heads.map((head) => element('th', { scope: 'col' }, head)))),
        element('tbody', {}, ...rows.map((row) => element('tr', {}, ...row.map((cell, i) =>
          i === 0 ? element('th', { scope: 'row', dir: 'auto' }, cell)
            : element('td', { class: 'number' }, cell)))))))));
}

/**
 * Swatches with their words. `look` is the class of the swatch.
 * @param {HTMLElement} host @param {{ look: string, words: string, definition?: string }[]} items
 */
export function chart_legend(host, items) {
  host.append(element('ul', { class: 'legend' }, ...items.map(({ look, words, definition }) =>
    element('li', { title: definition }, element('span', { class: `swatch ${look}` }), words))));
}
