// The worker: owns the engine and answers one question after another. Runs in a scope of its own,
// behind Emscripten's script, which defines stagelineEngine().

/** @type {any} */
let engine = null;

/**
 * @param {string} text
 * @returns {number} the address of a copy in the engine's memory, which the caller frees
 */
function put_text(text) {
  const bytes = engine.lengthBytesUTF8(text) + 1;
  const at = engine._malloc(bytes);
  engine.stringToUTF8(text, at, bytes);
  return at;
}

/**
 * @param {string} what
 * @param {string} text
 * @returns {string}
 */
function ask_engine(what, text) {
  const what_at = put_text(what);
  const text_at = put_text(text);
  try {
    return engine.UTF8ToString(engine._stageline_ask(what_at, text_at));
  } finally {
    engine._free(what_at);
    engine._free(text_at);
  }
}

/** @param {MessageEvent} event */
async function on_question(event) {
  const { id, what, text, bytes } = event.data;
  try {
    if (what === 'start') {
      engine = await /** @type {any} */ (globalThis).stagelineEngine({ wasmBinary: bytes });
      engine.FS.mkdir('/dropped');
      postMessage({ id, reply: '' });
    } else if (what === 'put') {
      engine.FS.writeFile(text, bytes);
      postMessage({ id, reply: '' });
    } else {
      const started = performance.now();
      const reply = ask_engine(what, text);
      postMessage({ id, reply, ms: performance.now() - started });
    }
  } catch (error) {
    postMessage({ id, failure: error instanceof Error ? error.message : String(error) });
  }
}

addEventListener('message', on_question);
