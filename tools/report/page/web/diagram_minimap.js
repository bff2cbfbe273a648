// The whole run in a strip, with the view as a window to drag.
import { gutter, sized_context } from './diagram_canvas.js';
import { paint_line } from './diagram_paint.js';

export const minimap_height = 36; // px
const no_focus = { kind: '', stage: -1, microbatch: -1, path: false, idle: false };

export class Minimap {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import('./diagram_canvas.js').RowsCanvas} rows
   */
  constructor(canvas, rows) {
    this.canvas = canvas;
    this.rows = rows;
    /** @type {ImageData | null} kept until something but the view changes */
    this.image = null;
  }

  /** @param {(share: number) => void} act with the place on the time axis, from 0 to 1 */
  on_drag(act) {
    const move = (/** @type {PointerEvent} */ event) => {
      const box = this.canvas.getBoundingClientRect();
      act((event.clientX - box.left - gutter) / (box.width - gutter));
    };
    this.canvas.addEventListener('pointerdown', (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    this.canvas.addEventListener('pointermove', (event) => { if (event.buttons) move(event); });
  }

  forget() {
    this.image = null;
  }

  /** @param {import('./diagram_canvas.js').View} view @param {number} width @param {number} total */
  paint(view, width, total) {
    const context = sized_context(this.canvas, width, minimap_height);
    const ratio = devicePixelRatio;
    const wide = Math.round((width - gutter) * ratio);
    const tall = Math.round(minimap_height * ratio);
    if (wide <= 0) return;
    if (!this.image || this.image.width !== wide) this.image = this.drawn(wide, tall, total);
    context.putImageData(this.image, Math.round(gutter * ratio), 0);
    const x_of = (/** @type {number} */ time) => gutter + time / total * (width - gutter);
    const [left, right] = [x_of(view.from), Math.max(x_of(view.to), x_of(view.from) + 3)];
    context.globalAlpha = 0.65;
    context.fillStyle = this.rows.ink.bg;
    context.fillRect(gutter, 0, left - gutter, minimap_height);
    context.fillRect(right, 0, width - right, minimap_height);
    context.globalAlpha = 1;
    context.strokeStyle = this.rows.ink.accent;
    context.lineWidth = 2;
    context.strokeRect(left + 1, 1, Math.max(1, right - left - 2), minimap_height - 2);
    context.font = '11px system-ui, "Segoe UI", "Liberation Sans", sans-serif';
    context.fillStyle = this.rows.ink.dim;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText('whole', gutter - 8, minimap_height / 2);
  }

  /** @param {number} wide @param {number} tall @param {number} total */
  drawn(wide, tall, total) {
    const image = new ImageData(wide, tall);
    const pixels = new Uint32Array(image.data.buffer);
    const rows = this.rows.layout.rows.filter((row) => row.stream === 0);
    const view = { scale: wide / total, step: 0, first: 0, until: wide };
    rows.forEach((row, i) => {
      const y0 = Math.floor(i * tall / rows.length);
      const y1 = Math.max(y0 + 1, Math.floor((i + 1) * tall / rows.length));
      paint_line(pixels, y0 * wide, row, row.tracks[0], view,
        /** @type {any} */ (this.rows.looks.get(row.run)), no_focus, null);
      for (let y = y0 + 1; y < y1; ++y) pixels.copyWithin(y * wide, y0 * wide, (y0 + 1) * wide);
    });
    return image;
  }
}
