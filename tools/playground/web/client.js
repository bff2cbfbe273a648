// The page's side of the engine: starts the worker and asks it.

/**
 * @param {string} id of an element that holds base64 of gzip
 * @returns {Promise<ArrayBuffer>}
 */
async function unpack_element(id) {
  const holder = /** @type {HTMLElement} */ (document.getElementById(id));
  const binary = atob((holder.textContent ?? '').trim());
  holder.remove();
  const packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) packed[i] = binary.charCodeAt(i);
  return gunzipped(new Blob([packed]));
}

/**
 * @param {Blob} blob
 * @returns {Promise<ArrayBuffer>}
 */
export function gunzipped(blob) {
  return new Response(blob.stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

/** @typedef {{ value: any, text: string, ms: number }} Reply */

export class Engine {
  constructor() {
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {Map<number, { done: (reply: any) => void, failed: (error: Error) => void }>} */
    this.open = new Map();
    this.last = 0;
  }

  async start() {
    const [script, wasm] = await Promise.all(
      [unpack_element('stageline-worker'), unpack_element('stageline-engine')]);
    const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
    this.worker = new Worker(url);
    this.worker.onmessage = (event) => this.receive(event.data);
    this.worker.onerror = (event) => this.fail(event.message);
    await this.send({ what: 'start', bytes: wasm }, [wasm]);
    URL.revokeObjectURL(url);
  }

  /** @param {any} data */
  receive(data) {
    const waiting = this.open.get(data.id);
    this.open.delete(data.id);
    if (!waiting) return;
    if (data.failure === undefined) waiting.done(data);
    else waiting.failed(new Error(data.failure));
  }

  /** @param {string} why */
  fail(why) {
    for (const waiting of this.open.values()) waiting.failed(new Error(why));
    this.open.clear();
  }

  /**
   * @param {any} message
   * @param {Transferable[]} [moved]
   * @returns {Promise<any>}
   */
  send(message, moved = []) {
    return new Promise((done, failed) => {
      const id = ++this.last;
      this.open.set(id, { done, failed });
      /** @type {Worker} */ (this.worker).postMessage({ ...message, id }, moved);
    });
  }

  /**
   * @param {string} what
   * @param {string} [text]
   * @returns {Promise<Reply>}
   */
  async ask(what, text = '') {
    const { reply, ms } = await this.send({ what, text });
    return { value: JSON.parse(reply), text: reply, ms };
  }

  /**
   * Puts a file into the engine's memory; gzip data are unpacked on the way.
   * @param {File} file
   * @returns {Promise<string>} its path there
   */
  async put(file) {
    const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
    const packed = head[0] === 0x1f && head[1] === 0x8b;
    const bytes = new Uint8Array(packed ? await gunzipped(file) : await file.arrayBuffer());
    const name = file.name.replaceAll('/', '_').replace(/\.gz$/, '');
    const path = `/dropped/${name}`;
    await this.send({ what: 'put', text: path, bytes }, [bytes.buffer]);
    return path;
  }
}
