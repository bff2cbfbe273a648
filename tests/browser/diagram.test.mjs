// What the diagram says is what simulate --json says.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const trace = 'model:resnet50@h100,batch=32';
const flags = ['--devices', '4', '--microbatches', '8', '--cluster', 'h100x8'];
const of_schedule = (schedule) => [trace, '--schedule', schedule, ...flags];
const gutter = 132;

const view_of = (page) => page.evaluate(() => {
  const { fromPs, toPs } = document.querySelector('.frame').dataset;
  return { from: Number(fromPs), to: Number(toPs) };
});

/** The place of an op of a compute lane: its middle. */
async function place_of(page, span) {
  const box = await page.locator('canvas.rows').boundingBox();
  const { from, to } = await view_of(page);
  const x = gutter + ((span.start_ps + span.end_ps) / 2 - from) / (to - from) * (box.width - gutter);
  return { x: box.x + x, box };
}

/** Heights of the rows of devices, found where the tip says so. */
async function hover_op(bench, page, span) {
  const { x, box } = await place_of(page, span);
  for (let y = 30; y < box.height; y += 4) {
    await page.mouse.move(x, box.y + y);
    const tip = await page.evaluate(() => {
      const host = document.querySelector('.tip');
      const facts = [...host.querySelectorAll('dd')].map((one) => [one.dataset.fact, one.textContent]);
      return host.hidden ? null : { ...host.dataset, facts: Object.fromEntries(facts) };
    });
    if (tip && tip.facts.where === `${span.device}, ${span.lane.replace('_', ' ')}`) {
      return { ...tip, y: box.y + y, x };
    }
  }
  return null;
}

const timelines = new Map();
function timeline_of(bench, schedule) {
  if (!timelines.has(schedule)) {
    timelines.set(schedule, bench.json('simulate', ...of_schedule(schedule), '--timeline'));
  }
  return timelines.get(schedule);
}

const opened = (bench, schedule, options) =>
  bench.open(bench.html('draw', ...of_schedule(schedule)), options);

export const tests = {
  'hover says the op, the times and the lane that the JSON has': async (bench) => {
    for (const schedule of ['1f1b', 'zb_h1', 'dualpipe']) {
      const { timeline } = timeline_of(bench, schedule);
      const page = await opened(bench, schedule);
      const compute = timeline.filter((span) => span.lane === 'compute');
      for (let i = 3; i < compute.length; i += 17) {
        const span = compute[i];
        const tip = await hover_op(bench, page, span);
        assert.ok(tip, `${span.op} on ${span.device} is found`);
        const at_once = compute.filter((one) => one.device === span.device &&
          one.start_ps === span.start_ps).map((one) => one.op);
        assert.ok(at_once.includes(tip.op), `${tip.op} is one of ${at_once}`);
        assert.equal(Number(tip.startPs), span.start_ps);
        assert.equal(Number(tip.endPs), span.end_ps);
      }
    }
    await bench.silent();
  },

  'j goes through a lane as the JSON does, k back': async (bench) => {
    const { timeline } = timeline_of(bench, '1f1b');
    const first = timeline.filter((span) => span.device === 'gpu0' && span.lane === 'compute');
    const page = await opened(bench, '1f1b');
    await page.focus('.frame');
    for (const span of first) {
      await bench.press(page, 'j');
      const said = await page.evaluate(() => ({ ...document.querySelector('.details').dataset }));
      assert.deepEqual([said.op, Number(said.startPs), Number(said.endPs)],
        [span.op, span.start_ps, span.end_ps]);
    }
    await bench.press(page, 'k');
    assert.equal(await page.getAttribute('.details', 'data-op'), first.at(-2).op);
    await bench.press(page, 'ArrowDown');
    assert.match(await page.innerText('.details [data-fact="where"]'), /gpu0, send|gpu1, compute/);
    await bench.silent();
  },

  'an op says what it needs, what needs it, what it waited for and which weights it reads':
  async (bench) => {
    const { timeline } = timeline_of(bench, '1f1b');
    const page = await opened(bench, '1f1b');
    const span = timeline.find((one) => one.op === '1B0');
    const { x, y } = await hover_op(bench, page, span);
    await page.mouse.click(x, y);
    await bench.settled(page);
    const others = await page.locator('.details .others').allInnerTexts();
    assert.match(others[0], /^needs.*1F0.*1RECV_B0/s);
    assert.match(others[1], /^needed by.*1SEND_B0/s);
    const before = timeline.filter((one) => one.device === span.device && one.lane === 'compute' &&
      one.end_ps <= span.start_ps).at(-1);
    const waited = await page.innerText('.details [data-fact="waited"]');
    const [amount, unit] = waited.split(' ');
    const scale = { s: 1e12, ms: 1e9, µs: 1e6, ns: 1e3, ps: 1 }[unit];
    const difference = Math.abs(Number(amount) * scale - (span.start_ps - before.end_ps));
    assert.ok(difference <= 1e-6 * (span.start_ps - before.end_ps), waited);
    assert.match(waited, /for 1RECV_B0 on gpu1/);
    assert.equal(await page.innerText('.details [data-fact="weights"]'), 'initial version');
    await page.click('.details .others button');
    assert.equal(await page.getAttribute('.details', 'data-op'), '1F0');
    await bench.silent();
  },

  'the wheel keeps the time below the pointer, 0 shows the whole': async (bench) => {
    const result = timeline_of(bench, '1f1b');
    const page = await opened(bench, '1f1b');
    const box = await page.locator('canvas.rows').boundingBox();
    assert.deepEqual(await view_of(page), { from: 0, to: result.makespan_ps });
    const share = 0.7;
    await page.mouse.move(box.x + gutter + share * (box.width - gutter), box.y + 60);
    await page.mouse.wheel(0, -600);
    await page.waitForFunction((to) => Number(document.querySelector('.frame').dataset.toPs) < to,
      result.makespan_ps);
    const { from, to } = await view_of(page);
    assert.ok(to - from < 0.5 * result.makespan_ps);
    assert.ok(Math.abs(from + share * (to - from) - share * result.makespan_ps) <
      0.002 * result.makespan_ps);
    await page.mouse.down();
    await page.mouse.move(box.x + gutter + 0.5 * (box.width - gutter), box.y + 60, { steps: 4 });
    await page.mouse.up();
    await bench.settled(page);
    const panned = await view_of(page);
    assert.ok(panned.from > from && Math.abs(panned.to - panned.from - (to - from)) < 10);
    await bench.press(page, '0');
    assert.deepEqual(await view_of(page), { from: 0, to: result.makespan_ps });
    await bench.silent();
  },

  'Tab reaches the diagram, its focus is seen, every key does what it says': async (bench) => {
    const result = timeline_of(bench, '1f1b');
    const page = await opened(bench, '1f1b');
    for (let i = 0; i < 30; ++i) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(() => document.activeElement.className === 'frame')) break;
    }
    assert.equal(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle),
      'solid');
    await bench.press(page, '+', '+', 'ArrowRight');
    const { from, to } = await view_of(page);
    assert.ok(from > 0 && to - from < 0.5 * result.makespan_ps);
    await bench.press(page, '-', '-', '-');
    assert.equal((await view_of(page)).from, 0);
    await bench.press(page, 'c');
    assert.equal(await page.getAttribute('button:text("critical path")', 'aria-pressed'), 'true');
    await bench.press(page, 'i');
    assert.equal(await page.getAttribute('button:text("critical path")', 'aria-pressed'), 'false');
    assert.match(await page.innerText('.legend'), /idle: filling/);
    await bench.press(page, 'j', 'f');
    assert.equal(await page.inputValue('input[type="number"]'), '0');
    await bench.press(page, 'Escape');
    assert.equal(await page.inputValue('input[type="number"]'), '');
    assert.equal(await page.getAttribute('.details', 'data-op'), null);
    await bench.silent();
  },

  'each op is drawn in the colour of its kind, at its times': async (bench) => {
    const { timeline } = timeline_of(bench, '1f1b');
    for (const colorScheme of ['light', 'dark']) {
      const page = await opened(bench, '1f1b', { colorScheme });
      const colours = { light: { F: [86, 168, 222], B: [205, 90, 10] },
        dark: { F: [92, 176, 230], B: [217, 101, 26] } }[colorScheme];
      const wanted = [];
      const places = [];
      for (const device of ['gpu0', 'gpu3']) {
        for (const span of timeline.filter((one) => one.device === device && one.lane === 'compute' &&
            /^\d[FB]\d/.test(one.op)).slice(0, 6)) {
          const { y } = await hover_op(bench, page, span);
          const { box } = await place_of(page, span);
          const { from, to } = await view_of(page);
          // Near its start, beside the label.
          places.push([Math.round(gutter + (span.start_ps + 0.15 * (span.end_ps - span.start_ps) -
            from) / (to - from) * (box.width - gutter)), Math.round(y - box.y)]);
          wanted.push(colours[span.op[1]]);
        }
      }
      const drawn = await page.evaluate((all) => {
        const canvas = document.querySelector('canvas.rows');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return all.map(([x, y]) => [...data.slice(4 * (y * canvas.width + x),
          4 * (y * canvas.width + x) + 3)]);
      }, places);
      assert.deepEqual(drawn, wanted, colorScheme);
    }
    await bench.silent();
  },

  'the table has the ops of the view': async (bench) => {
    const { timeline } = timeline_of(bench, '1f1b');
    const page = await opened(bench, '1f1b');
    await page.click('details.table summary');
    await page.waitForSelector('.table tbody tr');
    const names = [];
    for (;;) {
      names.push(...await page.locator('.table tbody th').allInnerTexts());
      const next = page.locator('button:text("next rows")');
      if (await next.isDisabled()) break;
      await next.click();
    }
    assert.deepEqual(names.sort(), timeline.map((span) => span.op).sort());
    assert.match(await page.innerText('.table caption'), new RegExp(`of ${timeline.length} in the view`));
    await bench.silent();
  },

  'the memory panel begins with the fullest device': async (bench) => {
    const result = timeline_of(bench, '1f1b');
    const device = result.per_device.reduce((a, b) => (a.peak_bytes > b.peak_bytes ? a : b));
    const page = await opened(bench, '1f1b');
    assert.equal(await page.locator('.memory canvas').count(), 1);
    const chosen = await page.evaluate(() => {
      const select = document.querySelector('.memory-of select');
      return select.options[select.selectedIndex].textContent;
    });
    assert.equal(chosen, device.name);
    await bench.silent();
  },

  'several schedules share one time axis, as long as the longest': async (bench) => {
    const page = await bench.open(bench.html('draw', ...of_schedule('gpipe,1f1b,zb_h1')));
    const makespans = ['gpipe', '1f1b', 'zb_h1'].map((one) => timeline_of(bench, one).makespan_ps);
    assert.equal((await view_of(page)).to, Math.max(...makespans));
    assert.match(await page.getAttribute('.frame', 'aria-label'), /gpipe: .*; 1f1b: .*; zb_h1: /);
    await bench.silent();
  },

  'versions of weights are said where they differ': async (bench) => {
    const page = await opened(bench, 'pipedream');
    await page.focus('.frame');
    const said = new Set();
    for (let i = 0; i < 14; ++i) {
      await bench.press(page, 'j');
      const fact = page.locator('.details [data-fact="weights"]');
      if (await fact.count()) said.add(await fact.innerText());
    }
    assert.ok(said.has('initial version') && said.has('after 1 update'), [...said].join());
    await bench.silent();
  },

  'the view is saved as SVG and as PNG': async (bench) => {
    const page = await opened(bench, '1f1b');
    const saved = async (name) => {
      const [download] = await Promise.all([page.waitForEvent('download'),
        page.click(`button:text-is("${name}")`)]);
      return readFileSync(await download.path());
    };
    const svg = (await saved('SVG')).toString('utf8');
    const { shapes, fault, titles, memory, words } = await page.evaluate((text) => {
      const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
      return { shapes: parsed.querySelectorAll('rect').length,
        titles: [...parsed.querySelectorAll('title')].map((one) => one.textContent),
        memory: [...parsed.querySelectorAll('.memory path')].map((one) => one.dataset.category),
        words: [...parsed.querySelectorAll('.memory text')].map((one) => one.textContent),
        fault: parsed.querySelector('parsererror')?.textContent ?? null };
    }, svg);
    assert.equal(fault, null);
    assert.ok(shapes > 60 && titles.includes('0F0') && titles.includes('3B7'));
    assert.ok(memory.includes('weights') && memory.includes('stash_weight_grad'), memory.join());
    assert.ok(words.some((one) => one.startsWith('peak ')), words.join());
    const png = await saved('PNG');
    assert.equal(png.subarray(1, 4).toString(), 'PNG');
    assert.ok(png.readUInt32BE(16) >= 1000);
    await bench.silent();
  },

  'pale ops have a bar, on the screen and in the saved picture': async (bench) => {
    const problem = ['draw', 'uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms', '--devices', '2',
      '--microbatches', '4', '--schedule'];
    const ops = 2 * 2 * 4; // of the second stage of each device: forward and backward of each micro-batch
    for (const [schedule, wanted] of [['interleaved_1f1b', ops], ['1f1b', 0]]) {
      const page = await bench.open(bench.html(...problem, schedule));
      const [download] = await Promise.all([page.waitForEvent('download'),
        page.click('button:text-is("SVG")')]);
      const svg = readFileSync(await download.path(), 'utf8');
      const { bars, high } = await page.evaluate((text) => {
        const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
        const number = (one, name) => Number(one.getAttribute(name));
        return { high: parsed.querySelectorAll('rect > title').length,
          bars: [...parsed.querySelectorAll('rect.bar')].map((one) => [number(one, 'x') + number(one, 'width') / 2,
            number(one, 'y') + number(one, 'height') / 2]) };
      }, svg);
      assert.ok(high >= ops);
      assert.equal(bars.length, wanted, schedule);
      // The canvas has them at the same places: dark on pale, in the middle of the bar and not below it.
      const drawn = await page.evaluate((all) => {
        const canvas = document.querySelector('canvas.rows');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const light = (x, y) => data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3)
          .reduce((sum, part) => sum + part, 0);
        return all.map(([x, y]) => [light(Math.round(x), Math.floor(y)), light(Math.round(x), Math.floor(y) + 3)]);
      }, bars);
      for (const [bar, below] of drawn) assert.ok(bar < 0.8 * below, `${bar} and ${below}`);
    }
    await bench.silent();
  },

  'what fits beside a reserve of memory is below the limit in the panel': async (bench) => {
    const peaks = timeline_of(bench, '1f1b').per_device.map((device) => device.peak_bytes);
    const memory = Math.round(Math.max(...peaks) * 1.1) + 2e9; // of which the reserve has 2 GB
    const page = await bench.open(bench.html('draw', ...of_schedule('1f1b'), '--memory', `${memory}B`,
      '--reserve', '2GB'));
    const [download] = await Promise.all([page.waitForEvent('download'),
      page.click('button:text-is("SVG")')]);
    const svg = readFileSync(await download.path(), 'utf8');
    const { limit, peak } = await page.evaluate((text) => {
      const panel = new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('.memory');
      const line = panel.querySelector('path[stroke-dasharray]').getAttribute('d');
      return { limit: Number(/^M\S+ ([0-9.]+)H/.exec(line)[1]),
        peak: Number(panel.querySelector('circle').getAttribute('cy')) };
    }, svg);
    assert.ok(limit < peak, `the limit at ${limit} px is below the peak at ${peak} px`);
    await bench.silent();
  },

  'on paper the page is light and without tools': async (bench) => {
    const page = await opened(bench, '1f1b', { colorScheme: 'dark' });
    assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await bench.settled(page);
    assert.equal(await page.getAttribute('html', 'data-theme'), 'light');
    assert.equal(await page.locator('.tools').isVisible(), false);
    await bench.silent();
  },

  'the theme is the reader\'s choice': async (bench) => {
    const page = await opened(bench, '1f1b');
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.selectOption('.switch select', 'dark');
    await bench.settled(page);
    assert.notEqual(await ground(), light);
    await bench.silent();
  },
};
