// What keys do.

export const key_words = 'Wheel, pinch or + and − zoom; drag or arrow keys move; 0 shows the whole. Click an op, ' +
  'or press j and k for the next and the one before in its lane, ↑ and ↓ for another lane; f follows ' +
  'its micro-batch, c shows the critical path, i what idle time is due to, Esc ends all that.';
/** @type {Map<string, (diagram: import('./section_diagram.js').Diagram) => void>} */
export const key_actions = new Map([
  ['ArrowLeft', (diagram) => diagram.pan(diagram.view.plot / 8, 0)],
  ['ArrowRight', (diagram) => diagram.pan(-diagram.view.plot / 8, 0)],
  ['ArrowUp', (diagram) => diagram.next_lane(-1)],
  ['ArrowDown', (diagram) => diagram.next_lane(1)],
  ['+', (diagram) => diagram.zoom(2 / 3)],
  ['=', (diagram) => diagram.zoom(2 / 3)],
  ['-', (diagram) => diagram.zoom(3 / 2)],
  ['−', (diagram) => diagram.zoom(3 / 2)],
  ['0', (diagram) => diagram.show_whole()],
  ['j', (diagram) => diagram.selection.next_op(1, diagram.view.from)],
  ['k', (diagram) => diagram.selection.next_op(-1, diagram.view.from)],
  ['c', (diagram) => diagram.set_focus({ path: !diagram.focus.path, idle: false })],
  ['i', (diagram) => diagram.set_focus({ idle: !diagram.focus.idle, path: false })],
  ['f', (diagram) => diagram.follow()],
  ['Escape', (diagram) => diagram.end_all()],
]);
