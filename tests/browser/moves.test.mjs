// Moves of large diagrams: what a frame costs does not grow with the run.
import assert from 'node:assert/strict';

const many = ['draw', 'uniform:layers=64', '--schedule', '1f1b', '--devices', '64', '--microbatches', '8000'];
const few = ['draw', 'model:resnet50@h100,batch=32', '--schedule', '1f1b', '--devices', '4',
  '--microbatches', '8', '--cluster', 'h100x8'];
const gutter = 132;

const view_of = (page) => page.evaluate(() => {
  const { fromPs, toPs } = document.querySelector('.frame').dataset;
  return { from: Number(fromPs), to: Number(toPs) };
});

/** Drags by 7 px in each of so many frames; what every frame took and looked up. */
const drag = (page, frames) => page.evaluate(async (count) => {
  const canvas = document.querySelector('canvas.rows');
  const { dataset } = document.querySelector('.frame');
  const box = canvas.getBoundingClientRect();
  canvas.setPointerCapture = () => {}; // of a pointer that is no device's
  const point = (type, dx) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1,
    clientX: box.left + 700 + dx, clientY: box.top + 100, buttons: 1, bubbles: true }));
  const frame = () => new Promise(requestAnimationFrame);
  point('pointerdown', 0);
  let last = await frame();
  const found = { ms: [], walked: [] };
  for (let i = 1; i <= count; ++i) {
    point('pointermove', -7 * (i < count / 2 ? i : count - i));
    const now = await frame();
    found.ms.push(now - last);
    found.walked.push(Number(dataset.walked));
    last = now;
  }
  point('pointerup', 0);
  return found;
}, frames);

const picture = (page) => page.evaluate(() => {
  const canvas = document.querySelector('canvas.rows');
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (let i = 0; i < data.length; ++i) sum = (Math.imul(sum, 31) + data[i]) | 0;
  return sum;
});

/** All lines are painted anew. */
async function paint_anew(bench, page) {
  for (const theme of ['dark', 'light']) {
    await page.selectOption('.switch select', theme);
    await bench.settled(page);
  }
}

const middle = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

export const tests = {
  'a million spans open, and a pan looks up what comes into view alone': async (bench) => {
    const page = await bench.open(bench.html(...many));
    const spans = Number(/ (\d+) ops/.exec(await page.getAttribute('.frame', 'aria-label'))[1]);
    assert.ok(spans >= 1e6, `${spans} spans`);
    await page.focus('.frame');
    for (const zooms of [1, 12, 14]) {
      for (let i = 0; i < zooms; ++i) await page.keyboard.press('+');
      await bench.settled(page);
      const { ms, walked } = await drag(page, 60);
      // 64 rows, and 7 columns that come into view: of each at most what is narrower and what is wider
      // than a pixel, and one more span at each end.
      const most = Math.max(...walked.slice(3));
      assert.ok(most <= 64 * (2 * 7 + 2), `a frame looked at ${most} spans`);
      assert.ok(Math.max(...walked) > 0);
      const { from, to } = await view_of(page);
      console.log(`  a pan over ${spans} spans, ${((to - from) / 1e9).toPrecision(3)} ms in view: ` +
        `${(1000 / middle(ms)).toFixed(0)} frames a second, the slowest frame ${Math.max(...ms).toFixed(1)} ms`);
    }
    await bench.silent();
  },

  'a view that was panned is the view painted anew': async (bench) => {
    for (const words of [few, many]) {
      const page = await bench.open(bench.html(...words), { colorScheme: 'light' });
      await page.focus('.frame');
      for (const keys of [['+', '+'], ['i'], ['c'], ['+', '+', '+', '+']]) {
        await bench.press(page, ...keys);
        await bench.press(page, 'ArrowRight', 'ArrowRight', 'ArrowLeft');
        await drag(page, 9);
        await bench.settled(page);
        const panned = await picture(page);
        await paint_anew(bench, page);
        assert.equal(await picture(page), panned, `${words[1]} after ${keys}`);
      }
      await page.close();
    }
    await bench.silent();
  },

  'two fingers zoom about the point between them': async (bench) => {
    const page = await bench.open(bench.html(...few), { hasTouch: true });
    const whole = await view_of(page);
    const box = await page.locator('canvas.rows').boundingBox();
    const touch = await page.context().newCDPSession(page);
    const center = box.x + gutter + 0.4 * (box.width - gutter);
    const send = (type, half) => touch.send('Input.dispatchTouchEvent', { type,
      touchPoints: half === null ? [] : [-half, half].map((dx, id) => ({ x: center + dx, y: box.y + 80, id })) });
    await send('touchStart', 40);
    for (let half = 50; half <= 160; half += 10) await send('touchMove', half);
    await send('touchEnd', null);
    await bench.settled(page);
    const { from, to } = await view_of(page);
    const length = to - from;
    assert.ok(Math.abs(length / (whole.to / 4) - 1) < 0.05, `a quarter is seen: ${length / whole.to}`);
    assert.ok(Math.abs(from + 0.4 * length - 0.4 * whole.to) < 0.02 * whole.to, 'about the middle of both');
    assert.equal(await page.getAttribute('.details', 'data-op'), null, 'a pinch selects nothing');
    await bench.silent();
  },
};
