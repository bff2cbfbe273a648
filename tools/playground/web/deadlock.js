// A deadlock as a picture: the lists of the devices, the ops of the cycle in them, and arrows from
// each op to the one that it waits for.
import { element, svg_element } from '../../report/page/web/dom.js';

/**
 * @typedef {{ op: string, device?: number, position?: number, line?: number, column?: number }}
 *   CycleOp
 * @typedef {{ message: string, cycle: CycleOp[] }} Deadlock
 */

const row_height = 44;
const cell_width = 62;
const cell_height = 26;
const left = 84;
const most_around = 3;

/**
 * The columns to draw: those of the cycle with some around.
 * @param {CycleOp[]} cycle
 * @param {number} longest
 */
function columns_of(cycle, longest) {
  const at = cycle.map((one) => one.position ?? 0);
  const from = Math.max(0, Math.min(...at) - most_around);
  const to = Math.min(longest, Math.max(...at) + most_around + 1);
  return { from, to: Math.min(to, from + 40) };
}

/**
 * @param {Deadlock} deadlock
 * @param {string[]} devices
 * @param {string[][]} ops by device
 * @returns {HTMLElement}
 */
export function deadlock_picture(deadlock, devices, ops) {
  const placed = deadlock.cycle.filter((one) => one.device !== undefined);
  const rows = [...new Set(placed.map((one) => one.device ?? 0))].sort((a, b) => a - b);
  const { from, to } = columns_of(placed, Math.max(...ops.map((list) => list.length)));
  /** @param {CycleOp} one */
  const centre = (one) => ({
    x: left + ((one.position ?? 0) - from + 0.5) * cell_width,
    y: (rows.indexOf(one.device ?? 0) + 0.5) * row_height,
  });
  const width = left + (to - from) * cell_width + 12;
  const picture = svg_element('svg', {
    class: 'deadlock', width, height: rows.length * row_height,
    viewBox: `0 0 ${width} ${rows.length * row_height}`, role: 'img',
    'aria-label': deadlock.message,
  }, svg_element('defs', {}, svg_element('marker',
    { id: 'arrow-head', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: 'auto-start-reverse' },
    svg_element('path', { d: 'M0 0L8 4L0 8z', class: 'head' }))));
  rows.forEach((device, row) => {
    const y = (row + 0.5) * row_height;
    picture.append(svg_element('text', { x: 4, y: y + 4, class: 'device' }, devices[device]));
    for (let i = from; i < Math.min(to, ops[device].length); ++i) {
      const in_cycle = placed.some((one) => one.device === device && one.position === i);
      const x = left + (i - from) * cell_width;
      picture.append(
        svg_element('rect', { x: x + 3, y: y - cell_height / 2, width: cell_width - 6,
          height: cell_height, rx: 4, class: in_cycle ? 'op stuck' : 'op' }),
        svg_element('text', { x: x + cell_width / 2, y: y + 4, class: in_cycle ? 'stuck' : '' },
          ops[device][i].length > 8 ? ops[device][i].slice(0, 7) + '…' : ops[device][i]));
    }
  });
  placed.forEach((one, i) => {
    const other = placed[(i + 1) % placed.length];
    const a = centre(one);
    const b = centre(other);
    const [down, along] = [Math.sign(b.y - a.y), Math.sign(b.x - a.x)];
    const path = down === 0
      ? `M${a.x} ${a.y - cell_height / 2}C${a.x} ${a.y - 22} ${b.x} ${b.y - 22} ` +
        `${b.x + 4 * -along} ${b.y - cell_height / 2}`
      : `M${a.x + 6} ${a.y + down * cell_height / 2}L${b.x + 6} ${b.y - down * cell_height / 2}`;
    picture.append(svg_element('path', { d: path, class: 'wait', 'marker-end': 'url(#arrow-head)' }));
  });
  return element('figure', { class: 'stuck' },
    element('figcaption', {}, deadlock.message),
    element('div', { class: 'wide', tabindex: '0' }, picture));
}
