// Pointers, wheel and keys, as moves of the view.
import { gutter } from './diagram_canvas.js';

/**
 * What the gestures do.
 * @typedef {{ zoom(factor: number, x: number): boolean, pan(dx: number, dy: number): void,
 *   hover(x: number, y: number): void, leave(): void, click(x: number, y: number): void,
 *   key(name: string): boolean }} Moves
 */

/** @param {HTMLElement} frame @param {HTMLCanvasElement} canvas @param {Moves} moves */
export function listen(frame, canvas, moves) {
  /** @type {Map<number, { x: number, y: number }>} */
  const pointers = new Map();
  let moved = 0;
  const at = (/** @type {PointerEvent | WheelEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  canvas.addEventListener('wheel', (event) => {
    const { x } = at(event);
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      moves.pan(-(event.deltaX || event.deltaY) * unit, 0);
      event.preventDefault();
    } else if (moves.zoom(Math.exp(event.deltaY * unit * 0.002), x)) {
      event.preventDefault(); // what zooms nothing scrolls the page
    }
  }, { passive: false });

  canvas.addEventListener('pointerdown', (event) => {
    pointers.set(event.pointerId, at(event));
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
    frame.focus({ preventScroll: true });
  });
  canvas.addEventListener('pointermove', (event) => {
    const now = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      moves.hover(now.x, now.y);
      return;
    }
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const apart = (/** @type {{ x: number, y: number }} */ one) =>
        Math.hypot(one.x - other.x, one.y - other.y);
      const shift = (now.x - before.x) / 2;
      moves.zoom(apart(before) / Math.max(1, apart(now)), (before.x + other.x) / 2);
      moves.pan(shift, 0);
    } else {
      moves.pan(now.x - before.x, now.y - before.y);
    }
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    pointers.set(event.pointerId, now);
  });
  const release = (/** @type {PointerEvent} */ event) => {
    const { x, y } = at(event);
    if (pointers.delete(event.pointerId) && moved < 4 && event.type === 'pointerup' && x > gutter) {
      moves.click(x, y);
    }
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', () => moves.leave());
  frame.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves.key(event.key)) event.preventDefault();
  });
}
