// The same pages in Firefox, by WebDriver BiDi: they open, are silent, and say what the JSON says.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { pages } from './pages.test.mjs';

const trace = 'model:resnet50@h100,batch=32';
const playground = process.env.STAGELINE_PLAYGROUND ?? '';
const command = (process.env.PATH ?? '').split(path.delimiter).flatMap((folder) =>
  ['firefox-esr', 'firefox'].map((name) => path.join(folder, name))).find(existsSync);

/** Runs a test with `open(file)`, which gives a page; fails where one says or asks for anything. */
const in_firefox = (test) => async (bench) => {
  const firefox = await bench.require('puppeteer-core').launch(
    { browser: 'firefox', executablePath: command, headless: true });
  const complaints = [];
  try {
    await test(bench, async (file) => {
      const page = await firefox.newPage();
      await page.setViewport({ width: 1400, height: 1000 });
      page.on('console', (message) => complaints.push(`${file}: ${message.text()}`));
      page.on('pageerror', (error) => complaints.push(`${file}: ${error}`));
      page.on('request', (request) => {
        // Firefox draws its own controls by data it names itself.
        if (!/^(data|blob):/.test(request.url()) && request.url() !== pathToFileURL(file).href) {
          complaints.push(`${file}: asks for ${request.url()}`);
        }
      });
      await page.goto(pathToFileURL(file).href);
      await page.waitForSelector('html[data-ready="true"]', { timeout: 60_000 });
      return page;
    });
  } finally {
    await firefox.close();
  }
  assert.deepEqual(complaints, []);
};

export const needs = command ? '' : 'Firefox';
export const tests = {
  'firefox: every kind of page opens from disk and says nothing': in_firefox(async (bench, open) => {
    const kinds = { ...pages, report: ['report', trace, '--devices', '4', '--microbatches', '8'] };
    for (const [kind, words] of Object.entries(kinds)) {
      const page = await open(bench.html(...words));
      const [sections, failures] = await page.evaluate(() =>
        [document.querySelectorAll('section').length, document.querySelectorAll('.failure').length]);
      assert.ok(sections > 0, kind);
      assert.equal(failures, 0, kind);
      await page.close();
    }
  }),

  'firefox: keys and the wheel give the ops and the view that the JSON has': in_firefox(
    async (bench, open) => {
      const words = [trace, '--schedule', 'zb_h1', '--devices', '4', '--microbatches', '8',
        '--cluster', 'h100x8'];
      const { timeline } = bench.json('simulate', ...words, '--timeline');
      const page = await open(bench.html('draw', ...words));
      await page.focus('.frame');
      for (const span of timeline.filter((one) => one.device === 'gpu0' && one.lane === 'compute')) {
        await page.keyboard.press('j');
        const said = await page.$eval('.details', (host) => ({ ...host.dataset }));
        assert.deepEqual([said.op, Number(said.startPs), Number(said.endPs)],
          [span.op, span.start_ps, span.end_ps]);
      }
      const width = () => page.$eval('.frame', (host) => host.dataset.toPs - host.dataset.fromPs);
      await page.keyboard.press('0');
      const whole = await width();
      const box = await (await page.$('canvas.rows')).boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + 40);
      await page.mouse.wheel({ deltaY: -240 });
      await page.waitForFunction((before) => {
        const { fromPs, toPs } = document.querySelector('.frame').dataset;
        return toPs - fromPs < before;
      }, {}, whole);
      await page.waitForFunction(() => !document.querySelector('.tip').hidden);
    }),
};
if (existsSync(playground)) {
  tests['firefox: the playground says what the command says'] = in_firefox(async (bench, open) => {
    const page = await open(playground);
    await page.waitForFunction(() => Number(document.documentElement.dataset.shown) > 0 &&
      !globalThis.playground.busy);
    const steps = await page.$$eval('td[data-figure="step"]',
      (cells) => cells.map((cell) => Number(cell.dataset.ps)));
    const shown = await page.$eval('code.command', (code) => code.textContent);
    assert.deepEqual(steps, shown.split(' · ').map((one) => bench.json(
      ...one.replace(/^stageline /, '').split(' ')).step_time_ps));
  });
}
