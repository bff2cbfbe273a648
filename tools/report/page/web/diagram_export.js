// The view as a file: SVG with its boxes as shapes and its words as text, or PNG of the canvases.
import { axis_height, gutter } from './diagram_canvas.js';
import { draw_marks } from './diagram_marks.js';
import { bar_on, column_of, has_focus, in_focus, walk } from './diagram_paint.js';
import { download, svg_element } from './dom.js';
import { round_ticks, shortened, time_words } from './words.js';

/** @param {number} colour */
const css_of = (colour) => '#' + [0, 8, 16].map(
  (shift) => (colour >> shift & 255).toString(16).padStart(2, '0')).join('');

/**
 * @param {import('./diagram_canvas.js').RowsCanvas} rows
 * @param {import('./diagram_canvas.js').View} view
 * @param {number} width
 * @param {number} height of the rows
 * @param {import('./diagram_paint.js').Focus} focus
 * @param {{ run: import('./diagram_run.js').Run, span: number } | null} selected
 * @param {import('./diagram_memory_panel.js').MemoryPanel} memory
 */
export function svg_of_view(rows, view, width, height, focus, selected, memory) {
  const plot = Math.round(width - gutter);
  const scale = plot / view.length;
  const first = column_of(view.from, scale);
  const gap = memory.height > 0 ? 10 : 0;
  const tall = height + gap + memory.height;
  const svg = svg_element('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height: tall,
    viewBox: `0 0 ${width} ${tall}`, 'font-family': 'sans-serif', 'font-size': 11 },
  svg_element('rect', { width, height: tall, fill: rows.ink.bg }));
  const texts_on = (/** @type {SVGElement} */ host) => (/** @type {string} */ words, /** @type {number} */ x,
    /** @type {number} */ y, /** @type {string} */ anchor, /** @type {string} */ fill) =>
    host.append(svg_element('text', { x, y: y + 4, 'text-anchor': anchor, fill }, words));
  const text = texts_on(svg);
  for (const tick of round_ticks(view.from, view.to, plot / 110)) {
    text(time_words(tick), gutter + (tick - view.from) * scale, axis_height / 2, 'middle', rows.ink.dim);
  }
  const focused = has_focus(focus);
  const visible = (/** @type {number} */ y, /** @type {number} */ high) =>
    y + high > 0 && y < height - axis_height;
  for (const row of rows.layout.rows) {
    const look = rows.looks.get(row.run);
    const y = row.y - view.top;
    if (!visible(y, row.height)) continue;
    const { colours, pale, stages } = /** @type {any} */ (look);
    svg.append(svg_element('rect', { x: gutter, y: y + axis_height, width: plot,
      height: row.height - 1, fill: css_of(colours.row) }));
    if (row.stream === 0) {
      text(shortened(row.run.devices[row.device], 18), gutter - 8, y + axis_height + row.height / 2,
        'end', rows.ink.text);
      if (focus.idle) {
        for (let i = row.run.idle_begin[row.device]; i < row.run.idle_begin[row.device + 1]; ++i) {
          const from = Math.max(view.from, row.run.idle_start[i]);
          const to = Math.min(view.to, row.run.idle_end[i]);
          if (to > from) {
            svg.append(svg_element('rect', { x: gutter + (from - view.from) * scale,
              y: y + axis_height, width: (to - from) * scale, height: row.height - 1,
              fill: css_of(colours.idle[row.run.idle_cause[i]]) }));
          }
        }
      }
    }
    const high = row.height / row.tracks.length;
    row.tracks.forEach((track, t) => walk(row, track, scale, first, first + plot, (from, until, span) => {
      const [begin, end] = [from - first, until - first];
      const at = 2 * row.run.kind[span] +
        (row.stream === 0 ? pale[row.device * stages + row.run.stage[span]] : 0);
      const full = !focused || in_focus(focus, row.run, span);
      const top = y + t * high + axis_height;
      const box = svg_element('rect', { x: gutter + begin, y: top, width: end - begin,
        height: high - 1, fill: css_of((full ? colours.full : colours.dim)[at]),
        stroke: end - begin >= 3 ? rows.ink.bg : null, 'stroke-width': 0.7 });
      if (end - begin >= 3) box.append(svg_element('title', {}, row.run.op(span)));
      svg.append(box);
      if (full && at % 2 === 1 && high >= 6 && end - begin >= 4) {
        svg.append(svg_element('rect', { class: 'bar',
          ...bar_on(gutter + begin, top, end - begin, high - 1),
          fill: colours.white[at] ? '#ffffff' : '#14171c' }));
      }
      if (full && high >= 13 && end - begin >= 14) {
        const label = String(row.run.microbatch[span]);
        if (label.length * 6.2 < end - begin - 4) {
          text(label, gutter + (begin + end) / 2, top + high / 2, 'middle',
            colours.white[at] ? '#ffffff' : '#14171c');
        }
      }
    }));
  }
  for (const heading of rows.layout.headings) {
    if (!visible(heading.y - view.top, heading.height)) continue;
    text(`${shortened(heading.run.title, 48)} · ${shortened(heading.run.subtitle, 120)}`, 2,
      heading.y - view.top + axis_height + 14, 'start', rows.ink.text);
  }
  draw_marks({
    path: (points, stroke, stroke_width) => svg.append(svg_element('polyline',
      { points: points.map((point) => point.join(',')).join(' '), fill: 'none', stroke,
        'stroke-width': stroke_width })),
    box: (x, y, w, h, stroke) => svg.append(svg_element('rect',
      { x, y, width: w, height: h, fill: 'none', stroke, 'stroke-width': 2 })),
    head: (x, y, fill) => svg.append(svg_element('path',
      { d: `M${x} ${y}l-7 -4v8z`, fill })),
  }, rows.layout, view, plot, selected, focus.path, rows.ink);
  const below = svg_element('g', { class: 'memory', transform: `translate(0 ${height + gap})` });
  memory.draw({ shape: (tag, attributes) => below.append(svg_element(tag, attributes)), text: texts_on(below) },
    view, width, rows.page, rows.ink);
  if (gap > 0) svg.append(below);
  return new XMLSerializer().serializeToString(svg) + '\n';
}

/**
 * The canvases, one below the other, as a PNG file.
 * @param {HTMLCanvasElement[]} canvases
 * @param {string} ground
 */
export function download_png(canvases, ground) {
  const whole = document.createElement('canvas');
  whole.width = Math.max(...canvases.map((one) => one.width));
  whole.height = canvases.reduce((sum, one) => sum + one.height, 0);
  const context = /** @type {CanvasRenderingContext2D} */ (whole.getContext('2d'));
  context.fillStyle = ground;
  context.fillRect(0, 0, whole.width, whole.height);
  let y = 0;
  for (const one of canvases) {
    context.drawImage(one, 0, y);
    y += one.height;
  }
  whole.toBlob((blob) => { if (blob) download('stageline.png', blob); });
}
