// What every test uses: pages of the command, opened from disk and watched.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export class Bench {
  constructor(places) {
    Object.assign(this, places);
    this.require = createRequire(path.join(this.modules, 'of-tests.js'));
    this.contexts = [];
    this.written = new Map();
  }

  /** What the command says; of `--json -` the value. */
  run(...words) {
    return execFileSync(this.command, words, { encoding: 'utf8', maxBuffer: 1 << 28, cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'] });
  }
  json(...words) {
    return JSON.parse(this.run(...words, '--json', '-'));
  }

  /** The page of a command line, written once. */
  html(...words) {
    const key = words.join(' ');
    if (!this.written.has(key)) {
      const file = path.join(this.folder, `${this.written.size}.html`);
      this.run(...words, '--html', file);
      this.written.set(key, file);
    }
    return this.written.get(key);
  }

  /** Opens a file; fails later where it says anything on the console or asks for anything. */
  async open(file, options = {}) {
    this.chromium ??= await this.require('playwright-core').chromium.launch(
      { executablePath: this.browser, args: ['--no-sandbox'] });
    const context = await this.chromium.newContext(
      { viewport: { width: 1400, height: 1000 }, acceptDownloads: true, ...options });
    const page = await context.newPage();
    const said = [];
    const asked = [];
    page.on('console', (message) => said.push(message.text()));
    page.on('pageerror', (error) => said.push(String(error)));
    page.on('request', (request) => asked.push(request.url()));
    this.contexts.push({ context, file, said, asked });
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector('html[data-ready="true"]', { timeout: 60_000 });
    await this.settled(page);
    return page;
  }

  /** Two frames later: what was asked to be painted is. */
  async settled(page) {
    await page.evaluate(() => new Promise((done) =>
      requestAnimationFrame(() => requestAnimationFrame(() => done(null)))));
  }

  async press(page, ...keys) {
    for (const key of keys) await page.keyboard.press(key);
    await this.settled(page);
  }

  /** What axe finds serious. */
  async axe(page) {
    await page.evaluate(readFileSync(path.join(this.modules, 'axe-core/axe.min.js'), 'utf8'));
    const found = await page.evaluate(() => globalThis.axe.run(document));
    return found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
      .map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 160))}`);
  }

  /** Closes the pages of a test. All must have been silent, and must have loaded one file. */
  async close_pages() {
    const closed = this.contexts;
    this.contexts = [];
    for (const { context, file, said, asked } of closed) {
      await context.close();
      if (said.length) this.complaints = (this.complaints ?? []).concat(`${file}: ${said.join('\n')}`);
      const others = asked.filter((url) => url !== pathToFileURL(file).href && !url.startsWith('blob:'));
      if (others.length) this.complaints = (this.complaints ?? []).concat(`${file}: asks for ${others}`);
    }
  }

  /** For the end of a test: what its pages said and asked for. */
  async silent() {
    await this.close_pages();
    const complaints = this.complaints ?? [];
    this.complaints = [];
    assert.deepEqual(complaints, []);
  }

  async end() {
    await this.chromium?.close();
  }

  source(name) {
    return readFileSync(path.join(this.root, name), 'utf8');
  }
}
