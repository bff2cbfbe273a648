// Tables and charts of the pages: they open, say what the JSON says, sort, filter, and are reached by keys.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const setting = ['resnet50-cpu', '--devices', '4', '--link', '2.5GB/s', '--memory', '1GB'];
const compared = ['compare', ...setting];
const pages = {
  compare: compared,
  'compare under jitter': ['compare', 'resnet50-cpu', '--devices', '4', '--jitter', '5%', '--schedule',
    '1f1b,zb_h1,gpipe'],
  'compare of a sweep': ['compare', 'resnet50-cpu', '--devices', '2..4', '--schedule', 'gpipe,pipedream'],
  'compare of two with causes': ['compare', 'resnet50-cpu', '--devices', '4', '--schedule', '1f1b,zb_h1',
    '--why'],
  'compare where nothing fits': ['compare', 'resnet50-cpu', '--devices', '4', '--memory', '1MB',
    '--schedule', '1f1b,gpipe', '--no-changes'],
  report: ['report', ...setting],
  whatif: ['whatif', 'resnet50-cpu', '--devices', '4', '--schedule', '1f1b,zb_h1', '--jitter', '5%',
    '--scenarios', '500'],
  'simulate with causes': ['simulate', 'resnet50-cpu', '--devices', '4', '--why', '--jitter', '5%'],
  sensitivity: ['sensitivity', 'resnet50-cpu', '--devices', '4', '--link', '10GB/s,5us'],
  plan: ['plan', 'resnet50-cpu', '--samples', '64', '--devices', '4', '--schedule', '1f1b,zb_h1'],
};

// A command that answers "no" still writes its page.
function html_of(bench, words) {
  const file = path.join(bench.folder, `charts-${words.join('-').replace(/\W+/g, '-').slice(0, 120)}.html`);
  if (!bench.written.has(file)) {
    try {
      bench.run(...words, '--html', file);
    } catch (error) {
      if (error.status !== 1) throw error;
    }
    bench.written.set(file, file);
  }
  return file;
}

const column_of = (page, title) => page.evaluate((wanted) => {
  const table = document.querySelector('.section-table table');
  const heads = [...table.querySelectorAll('thead th')];
  const at = heads.findIndex((head) => head.querySelector('button').textContent === wanted);
  return [...table.querySelectorAll('tbody tr')].map((row) => ({
    text: row.children[at].textContent, exact: row.children[at].dataset.exact ?? '' }));
}, title);

const sort_by = (page, title) =>
  page.locator('.section-table thead button', { hasText: new RegExp(`^${title}$`) }).first().click();

export const tests = {};
for (const [name, words] of Object.entries(pages)) {
  tests[`${name}: opens, is silent, and axe finds nothing serious in light and dark`] = async (bench) => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await bench.open(html_of(bench, words), { colorScheme });
      assert.equal(await page.locator('.failure').count(), 0);
      assert.deepEqual(await bench.axe(page), []);
      const least = await page.evaluate(() => Math.min(...[...document.querySelectorAll('svg.chart text')]
        .map((text) => parseFloat(getComputedStyle(text).fontSize)), 99));
      assert.ok(least >= 11, `text of ${least} px`);
    }
    await bench.silent();
  };
}

Object.assign(tests, {
  'the table of a comparison has the numbers of the JSON': async (bench) => {
    const rows = bench.json(...compared).filter((row) => !row.error);
    const page = await bench.open(html_of(bench, compared));
    const names = (await column_of(page, 'schedule')).map((cell) => cell.text.replace(/ (recommended|fastest)$/, ''));
    const steps = await column_of(page, 'step');
    const bubbles = await column_of(page, 'bubble');
    const peaks = await column_of(page, 'peak memory');
    assert.equal(names.length, rows.length);
    for (const row of rows) {
      const at = names.indexOf(row.schedule);
      assert.ok(at >= 0, row.schedule);
      assert.equal(steps[at].exact, `${row.step_time_ps} ps`);
      assert.equal(Number(bubbles[at].exact), row.bubble_fraction);
      const most = Math.max(...row.per_device.map((device) => device.peak_bytes));
      if (row.fits === 'yes') assert.equal(peaks[at].exact, `${most} B`);
    }
    await bench.silent();
  },

  'a click on a head sorts by the number, again turns round, and a third time restores': async (bench) => {
    const page = await bench.open(html_of(bench, compared));
    const numbers = async () => (await column_of(page, 'step')).map((cell) => parseInt(cell.exact, 10));
    const given = await numbers();
    await sort_by(page, 'step');
    assert.deepEqual(await numbers(), [...given].sort((a, b) => a - b));
    assert.equal(await page.locator('.section-table th[aria-sort]').first().getAttribute('aria-sort'), 'ascending');
    await page.keyboard.press('Enter');
    assert.deepEqual(await numbers(), [...given].sort((a, b) => b - a));
    assert.equal(await page.locator('.section-table th[aria-sort]').first().getAttribute('aria-sort'), 'descending');
    await page.keyboard.press('Enter');
    assert.deepEqual(await numbers(), given);
    assert.equal(await page.locator('.section-table th[aria-sort]').count(), 0);
    await bench.silent();
  },

  'a filter keeps the rows that have its words, and columns hide and return': async (bench) => {
    const page = await bench.open(html_of(bench, compared));
    const all = (await column_of(page, 'schedule')).length;
    await page.fill('.section-table input[type=search]', 'zb');
    const left = await column_of(page, 'schedule');
    assert.ok(left.length > 0 && left.length < all);
    assert.ok(left.every((cell) => cell.text.includes('zb')));
    assert.equal(await page.locator('.section-table .count').first().textContent(), `${left.length} of ${all} rows`);
    await page.fill('.section-table input[type=search]', '');
    assert.equal((await column_of(page, 'schedule')).length, all);
    const shown = () => page.locator('.section-table thead th:visible').count();
    const before = await shown();
    await page.click('.section-table details.columns summary');
    await page.getByLabel('bubble', { exact: true }).first().uncheck();
    assert.equal(await shown(), before - 1);
    await page.getByLabel('bubble', { exact: true }).first().check();
    assert.equal(await shown(), before);
    await bench.silent();
  },

  'every head has its definition, to see and to hear': async (bench) => {
    const page = await bench.open(html_of(bench, compared));
    const heads = await page.evaluate(() => [...document.querySelectorAll('.section-table thead button')]
      .map((head) => [head.textContent, head.title,
        document.getElementById(head.getAttribute('aria-describedby'))?.textContent]));
    for (const [title, seen, heard] of heads) {
      assert.ok(seen.length > 10, title);
      assert.equal(seen, heard);
    }
    await bench.silent();
  },

  'arrows go from bar to bar, and Enter leads to the row, also where it was filtered out': async (bench) => {
    const page = await bench.open(html_of(bench, compared));
    await page.fill('.section-table input[type=search]', 'nothing has this');
    await page.locator('.section-ranking .mark[tabindex="0"]').first().focus();
    await bench.press(page, 'ArrowDown');
    const label = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
    assert.ok(await page.locator('.chart-tip').isVisible());
    assert.equal(await page.locator('.chart-tip-name').textContent(), label.split(';')[0]);
    await bench.press(page, 'Enter');
    const row = await page.evaluate(() => document.activeElement.querySelector('th').textContent);
    assert.equal(row, label.split(';')[0]);
    await bench.silent();
  },

  'the front of the scatter is that of the JSON': async (bench) => {
    const fitting = bench.json(...compared).filter((row) => row.fits === 'yes' && row.synchronous)
      .map((row) => ({ name: row.schedule, step: row.step_time_ps,
        peak: Math.max(...row.per_device.map((device) => device.peak_bytes)) }));
    const front = fitting.filter((one) => !fitting.some((other) => other !== one &&
      other.step <= one.step && other.peak <= one.peak &&
      (other.step < one.step || other.peak < one.peak)));
    const page = await bench.open(html_of(bench, compared));
    const drawn = await page.evaluate(() => [...document.querySelectorAll('.section-scatter .mark')]
      .filter((mark) => mark.querySelector('.point.best'))
      .map((mark) => mark.getAttribute('aria-label').split(/[ ;]/)[0]));
    assert.deepEqual(drawn.sort(), front.map((one) => one.name).sort());
    await bench.silent();
  },

  'the curves of a sweep have a point for each row of the JSON, with its speed-up': async (bench) => {
    const words = pages['compare of a sweep'];
    const page = await bench.open(html_of(bench, words));
    const said = await page.locator('.section-curves .mark').evaluateAll((marks) =>
      marks.map((mark) => mark.getAttribute('aria-label')));
    const rows = bench.json(...words).filter((row) => !row.error);
    assert.deepEqual(said.sort(), rows.map((row) =>
      `${row.schedule}; ${row.devices} devices · ${row.speedup.toFixed(2)}×`).sort());
    const heads = await page.locator('.section-curves details.same thead th').allTextContents();
    assert.deepEqual(heads, ['', '2', '3', '4']);
    await bench.silent();
  },

  'the causes of a waterfall and the quantiles of a distribution are those of the JSON': async (bench) => {
    const words = pages['compare of two with causes'];
    const page = await bench.open(html_of(bench, words));
    const cause_names = bench.json(...words)[0].waterfall.causes.filter((one) => one.time_ps !== 0)
      .map((one) => one.cause);
    const said = await page.locator('.section-waterfall details.same tbody th').allTextContents();
    for (const cause of cause_names) assert.ok(said.includes(cause), cause);
    const what = pages.whatif;
    const found = bench.json(...what).rows;
    const other = await bench.open(html_of(bench, what));
    const p95 = await column_of(other, 'p95');
    assert.deepEqual(p95.map((cell) => cell.exact), found.map((row) => `${row.p95_ps} ps`));
    await other.getByRole('button', { name: 'Histogram' }).click();
    assert.equal(await other.locator('.section-distribution path.area').count(), found.length);
    await bench.silent();
  },

  'names with markup stay text in tables and charts': async (bench) => {
    const name = '</script><script>globalThis.intruded = 1</script>"\u202e' + 'x'.repeat(10_000);
    const trace = path.join(bench.folder, 'hostile-charts.json');
    bench.run('import', 'uniform:layers=4,forward=1ms', '--out', trace, '--quiet');
    writeFileSync(trace, JSON.stringify({ ...JSON.parse(readFileSync(trace, 'utf8')), name }));
    const file = html_of(bench, ['report', trace, '--devices', '2', '--schedule', '1f1b,gpipe']);
    const page = await bench.open(file);
    assert.equal(await page.evaluate(() => globalThis.intruded), undefined);
    assert.ok((await page.locator('h1').textContent()).includes('</script>'));
    await bench.silent();
  },
});
