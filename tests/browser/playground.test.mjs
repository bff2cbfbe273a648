// The playground: the engine in the page says what the command says.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const file = process.env.STAGELINE_PLAYGROUND ?? '';

/** Waits until what a change asks for has been shown. */
async function after(page, act) {
  const before = await page.evaluate(() => Number(document.documentElement.dataset.shown ?? 0));
  await act();
  await page.waitForFunction((count) => Number(document.documentElement.dataset.shown) > count &&
    !globalThis.playground.busy, before);
}

const steps = (page) => page.$$eval('td[data-figure="step"]',
  (cells) => cells.map((cell) => Number(cell.dataset.ps)));

/** What the command answers to the words that the page shows, by side. */
async function native_answers(bench, page) {
  const words = await page.textContent('code.command');
  return words.split(' · ').map((command) => bench.json(
    ...command.replace(/^stageline /, '').replaceAll("'", '').split(' ')));
}

/** The steps of both sides by the command, from the words that the page shows. */
async function native_steps(bench, page) {
  return (await native_answers(bench, page)).map((answer) => answer.step_time_ps);
}

async function opened(bench, hash = '', options = {}) {
  const page = await bench.open(file, options);
  if (hash) await after(page, () => page.evaluate((text) => { location.hash = text; }, hash));
  return page;
}

async function drop(page, name, bytes) {
  await page.evaluate(([called, base64]) => {
    const data = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([data], called));
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true,
      cancelable: true }));
  }, [name, Buffer.from(bytes).toString('base64')]);
}

const stuck = `stageline-program 1
microbatches: 2
stage 0: gpu0
stage 1: gpu1
gpu0: 0F0 0B0 0F1 0B1
gpu1: 1F1 1F0 1B0 1B1
`;

export const tests = !file || !existsSync(file) ? {} : {
  'playground: opens from disk, asks for nothing, and says what the command says': async (bench) => {
    const page = await opened(bench);
    assert.deepEqual(await steps(page), await native_steps(bench, page));
    assert.equal(await page.locator('#diagram canvas').count() > 0, true);
    // By its own style sheet, beside those of the report.
    assert.equal(await page.$eval('main.playground', (main) => getComputedStyle(main).display), 'grid');
    await bench.silent();
  },

  'playground: a slider changes the step to what the command says': async (bench) => {
    const page = await opened(bench);
    const before = await steps(page);
    await after(page, () => page.locator('#slider-m').fill('140'));
    await after(page, () => page.locator('#slider-latency').fill('120'));
    await after(page, () => page.locator('#field-F').fill('1234'));
    const now = await steps(page);
    assert.notDeepEqual(now, before);
    assert.deepEqual(now, await native_steps(bench, page));
    await bench.silent();
  },

  'playground: a knob is part of the question': async (bench) => {
    const page = await opened(bench);
    await after(page, () => page.selectOption('#schedule-a', 'interleaved_1f1b'));
    const chunks = page.locator('.schedule').first().getByLabel('chunks');
    await after(page, async () => { await chunks.fill('4'); await chunks.blur(); });
    assert.match(await page.evaluate(() => location.hash), /a=interleaved_1f1b:chunks=4/);
    assert.deepEqual(await steps(page), await native_steps(bench, page));
    await bench.silent();
  },

  'playground: the address is the question': async (bench) => {
    const page = await opened(bench);
    await after(page, () => page.selectOption('#schedule-b', 'dualpipe_v'));
    await after(page, () => page.locator('#field-p').fill('6'));
    const hash = await page.evaluate(() => location.hash);
    const said = await steps(page);
    const other = await opened(bench, hash);
    assert.deepEqual(await steps(other), said);
    assert.equal(await other.inputValue('#schedule-b'), 'dualpipe_v');
    assert.equal(await other.inputValue('#field-p'), '6');
    await opened(bench, '#p=x&m=1e9&a=nonsense&program=%%%&zzz=1');
    await bench.silent();
  },

  'playground: an error is underlined at its line and column': async (bench) => {
    const page = await opened(bench);
    const text = await page.inputValue('textarea.program');
    await after(page, () => page.fill('textarea.program', text.replace('0F1', '0X1')));
    const lines = text.split('\n');
    const line = lines.findIndex((one) => one.includes('0F1'));
    const mark = page.locator('.mark.error').first();
    assert.equal(await mark.getAttribute('data-line'), String(line + 1));
    assert.equal(await mark.getAttribute('data-column'), String(lines[line].indexOf('0F1') + 1));
    assert.equal(await mark.textContent(), '0X1');
    await after(page, () => page.fill('textarea.program', text));
    assert.equal(await page.locator('.mark.error').count(), 0);
    await bench.silent();
  },

  'playground: a deadlock is drawn with its cycle, and is in the address': async (bench) => {
    const page = await opened(bench);
    await after(page, () => page.fill('textarea.program', stuck));
    const cycle = await page.$$eval('.deadlock text.stuck', (all) => all.map((one) => one.textContent));
    assert.equal(cycle.length >= 2, true);
    assert.equal(await page.locator('.deadlock .wait').count(), cycle.length);
    assert.match(await page.textContent('figure.stuck figcaption'), / needs /);
    const other = await opened(bench, await page.evaluate(() => location.hash));
    assert.equal(await other.inputValue('textarea.program'), stuck);
    await bench.silent();
  },

  'playground: takes dropped files': async (bench) => {
    bench.run('program', 'uniform:layers=4', '--devices', '4', '--microbatches', '6', '--format',
      'pytorch', '--out', 'schedule.csv');
    bench.run('draw', 'uniform:layers=4', '--devices', '2', '--microbatches', '3', '--chrome',
      'chrome.json');
    const read = (name) => readFileSync(path.join(bench.folder, name));
    const page = await opened(bench);
    await after(page, () => drop(page, 'chrome.json', read('chrome.json')));
    assert.equal(await page.locator('table.figures tbody tr').count(), 3);
    await after(page, () => drop(page, 'schedule.csv', read('schedule.csv')));
    assert.match(await page.inputValue('textarea.program'), /^stageline-program 1\n/);
    assert.match(await page.evaluate(() => location.hash), /program=/);
    await after(page, () => drop(page, 'gpt2-h100.json',
      readFileSync(path.join(bench.root, 'traces/data/gpt2-h100.json'))));
    assert.match(await page.evaluate(() => location.hash), /trace=/);
    await drop(page, 'bad.json', '{"layers": 3}');
    await page.waitForSelector('.notes .failure');
    assert.match(await page.textContent('.notes .failure'), /bad\.json/);
    await bench.silent();
  },

  'playground: a change keeps the view, the selected op and the modes': async (bench) => {
    const page = await opened(bench);
    const canvas = await page.locator('canvas.rows').elementHandle();
    await page.focus('.frame');
    await bench.press(page, '+', '+', 'j', 'c');
    const seen = () => page.evaluate(() => {
      const { fromPs, toPs } = document.querySelector('.frame').dataset;
      return { from: Number(fromPs), to: Number(toPs), op: document.querySelector('.details').dataset.op,
        path: document.querySelector('button[aria-pressed="true"]')?.textContent };
    });
    const before = await seen();
    const total = () => page.evaluate(() => globalThis.playground.drawn.view.total);
    const was = await total();
    await after(page, () => page.locator('#field-F').fill('1500'));
    await bench.settled(page);
    const now = await seen();
    assert.notEqual(await total(), was);
    assert.deepEqual([now.op, now.path], [before.op, 'critical path']);
    assert.ok(Math.abs(now.from / await total() - before.from / was) < 1e-9, 'the same fractions');
    assert.ok(Math.abs(now.to / await total() - before.to / was) < 1e-9);
    await after(page, () => page.locator('#field-m').fill('16'));
    await bench.settled(page);
    const longer = await seen();
    assert.deepEqual([longer.from, longer.to, longer.op], [now.from, now.to, now.op], 'the same times');
    await page.focus('.frame');
    await bench.press(page, '0');
    await after(page, () => page.locator('#field-p').fill('2'));
    await bench.settled(page);
    assert.deepEqual([(await seen()).from, (await seen()).to], [0, await total()], 'the whole stays the whole');
    await page.fill('.tools input[type="number"]', '12');
    await after(page, () => page.locator('#field-m').fill('14'));
    assert.equal(await page.inputValue('.tools input[type="number"]'), '12');
    await after(page, () => page.locator('#field-m').fill('9'));
    assert.equal(await page.inputValue('.tools input[type="number"]'), '', 'there is no micro-batch 12');
    assert.equal(await canvas.evaluate((one) => one.isConnected), true);
    await bench.silent();
  },

  'playground: nothing is wider than the window, and fields stand where they should': async (bench) => {
    for (const width of [390, 800, 1000, 1400, 1920]) {
      const page = await opened(bench, '', { viewport: { width, height: 900 } });
      await page.locator('details.words > summary').click();
      const placed = await page.evaluate(() => {
        const place = (name) => document.querySelector(name).getBoundingClientRect();
        const outside = [...document.querySelectorAll('body *')].filter((one) =>
          !one.closest('.scrolls, .wide, .section-diagram, .editor') && one.getClientRects().length > 0 &&
          one.getBoundingClientRect().right > innerWidth + 0.5);
        return { whole: document.documentElement.scrollWidth, fields: place('form.fields'),
          results: place('.results'), tops: [...document.querySelectorAll('fieldset .field')].filter(
            (field) => field.getClientRects().length > 0).map(
            (field) => field.getBoundingClientRect().top), outside: outside.map((one) => one.outerHTML.slice(0, 90)) };
      });
      assert.deepEqual(placed.outside, [], `at ${width}`);
      assert.equal(placed.whole, width, `at ${width} the page is ${placed.whole} wide`);
      // A field a row; beside the results on a wide window, above them on a narrow one.
      assert.equal(new Set(placed.tops).size, placed.tops.length);
      if (width > 900) assert.equal(placed.fields.right < placed.results.left, true);
      else assert.equal(placed.fields.bottom < placed.results.top, true);
    }
    await bench.silent();
  },

  'playground: a preset is a case with a sentence, and is left by a change': async (bench) => {
    const page = await opened(bench, '#p=6&F=1500');
    const presets = page.locator('.presets button');
    assert.equal(await presets.count(), 7);
    for (let i = 0; i < 7; ++i) {
      await after(page, () => presets.nth(i).click());
      assert.equal(await presets.nth(i).getAttribute('aria-pressed'), 'true');
      assert.equal(await page.locator('.presets button[aria-pressed="true"]').count(), 1);
      assert.match(await page.textContent('.presets .hint'), /\.$/);
      assert.equal(await page.locator('.figures .error').count(), 0);
      assert.deepEqual(await steps(page), await native_steps(bench, page));
    }
    await after(page, () => page.locator('#field-m').fill('24'));
    assert.equal(await page.locator('.presets button[aria-pressed="true"]').count(), 0);
    await bench.silent();
  },

  'playground: every field and figure has its sentence': async (bench) => {
    const page = await opened(bench);
    const [shown, explained] = await page.evaluate(() => [
      'fieldset .field > span:first-child, .figures thead th, .moment thead th:not(:first-child), .time > span', '.words dt'].map(
      (names) => [...document.querySelectorAll(names)].map((one) => one.textContent)));
    assert.equal(shown.length > 15, true);
    assert.deepEqual(shown.filter((word) => !explained.includes(word)), []);
    await after(page, () => page.getByRole('button', { name: 'Llama 3 70B' }).click());
    const others = await page.$$eval('fieldset .field > span:first-child, .figures thead th',
      (all) => all.map((one) => one.textContent));
    assert.equal(others.includes('tp') && others.includes('MFU') && others.includes('pipeline ranks'), true);
    assert.deepEqual(others.filter((word) => !explained.includes(word)), []);
    await bench.silent();
  },

  'playground: the diagram is stepped an op at a time, and says what each device does': async (bench) => {
    const page = await opened(bench, '#b=');
    const command = (await page.textContent('code.command')).replace(/^stageline /, '').split(' ');
    const native = bench.json(...command, '--timeline');
    const spans = native.timeline.filter((one) => one.lane === 'compute');
    const devices = native.per_device.map((one) => one.name);
    const end_of = (op) => spans.find((one) => one.op === op).end_ps;
    const stops = [0, ...new Set(spans.map((one) => one.end_ps).sort((a, b) => a - b))];
    const shown = () => page.evaluate(() => ({
      time: Number(document.querySelector('.frame').dataset.timePs),
      rows: [...document.querySelectorAll('.moment tbody tr')].map((row) =>
        [...row.children].slice(0, 4).map((cell) => cell.textContent)) }));
    const expected = (time) => devices.map((device) => {
      const here = spans.filter((one) => one.device === device);
      const running = here.filter((one) => one.start_ps <= time && one.end_ps > time);
      const done = here.filter((one) => one.end_ps <= time);
      const in_flight = done.filter((one) => /F/.test(one.op) && end_of(one.op.replace('F', 'B')) > time);
      return [device, running.map((one) => one.op).join(' + ') || '–', `${done.length} of ${here.length}`,
        String(in_flight.length)];
    });
    assert.equal((await shown()).time, stops.at(-1), 'before the first step all has run');
    assert.equal(await page.isVisible('.moments'), false);
    await page.focus('.player input[type="range"]');
    await bench.press(page, 'Home');
    for (const stop of stops.slice(0, 12)) {
      assert.deepEqual(await shown(), { time: stop, rows: expected(stop) });
      await bench.press(page, 'ArrowRight');
    }
    await bench.press(page, 'ArrowLeft', 'ArrowLeft');
    assert.deepEqual(await shown(), { time: stops[10], rows: expected(stops[10]) });
    assert.match(await page.textContent('.player .ended'), / ended \d+[FB]\d+/);
    await page.focus('.frame');
    await bench.press(page, '.', '.', ',');
    assert.equal((await shown()).time, stops[11]);
    await page.locator('.player input[type="range"]').fill(String(stops[5] + 7));
    await bench.settled(page);
    assert.deepEqual(await shown(), { time: stops[5] + 7, rows: expected(stops[5]).map((row, d) => {
      row[1] = expected(stops[5] + 7)[d][1];
      return row;
    }) });
    // The address is the question; the time is none.
    assert.equal(await page.evaluate(() => location.hash), '#b=');
    await bench.silent();
  },

  'playground: what each device holds at a time has the peak of the figures': async (bench) => {
    for (const hash of ['#b=', '#a=zb_h1&b=']) {
      const page = await opened(bench, hash);
      const command = (await page.textContent('code.command')).replace(/^stageline /, '').split(' ');
      const { per_device, per_stage } = bench.json(...command);
      const most = await page.evaluate(() => {
        const { player } = globalThis.playground.drawn;
        const [moments] = player.tables.moments;
        return moments.run.devices.map((_, device) => {
          const seen = [...moments.run.start, ...moments.run.end].map((time) => moments.doing(device, time));
          return { bytes: Math.max(...seen.map((one) => one.bytes)),
            in_flight: Math.max(...seen.map((one) => one.in_flight)) };
        });
      });
      assert.deepEqual(most.map((one) => one.bytes), per_device.map((one) => one.peak_bytes));
      if (hash === '#b=') {
        assert.deepEqual(most.map((one) => one.in_flight), per_stage.map((one) => one.stash_peak));
      }
    }
    await bench.silent();
  },

  'playground: what is later than the time is pale, and all is shown at the end': async (bench) => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await opened(bench, '', { colorScheme });
      /** How many pixels of a half of the rows are of colours that are not grey. */
      const coloured = () => page.evaluate(() => {
        const { canvas } = globalThis.playground.drawn;
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        const left = Math.round(132 * devicePixelRatio);
        return [0, 1].map((half) => {
          const wide = Math.floor((canvas.width - left) / 2);
          const { data } = copy.getImageData(left + half * wide, 40, wide, canvas.height - 40);
          let count = 0;
          for (let i = 0; i < data.length; i += 4) {
            if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 70) ++count;
          }
          return count;
        });
      });
      const whole = await coloured();
      const slider = page.locator('.player input[type="range"]');
      await slider.fill(String(Number(await slider.getAttribute('max')) / 2));
      await bench.settled(page);
      const half = await coloured();
      assert.ok(half[0] > 0.95 * whole[0], `${half} of ${whole}`);
      assert.ok(half[1] < 0.1 * whole[1], `${half} of ${whole}`);
      assert.deepEqual(await bench.axe(page), []);
      await page.click('.player button[aria-label="to the end"]');
      await bench.settled(page);
      assert.deepEqual(await coloured(), whole);
    }
    await bench.silent();
  },

  'playground: plays and pauses, says how fast, and keeps its time in another case': async (bench) => {
    const page = await opened(bench);
    const time = () => page.evaluate(() => globalThis.playground.drawn.player.time);
    const total = await time();
    assert.match(await page.textContent('.player .rate'), /^1 s shows [\d.]+ ms$/);
    await page.focus('.frame');
    await bench.press(page, ' ');
    assert.match(await page.textContent('.player button'), /pause/);
    await page.waitForFunction(() => globalThis.playground.drawn.player.time > 0);
    await bench.press(page, ' ');
    assert.match(await page.textContent('.player button'), /play/);
    const paused = await time();
    await bench.settled(page);
    assert.equal(await time(), paused);
    assert.ok(paused > 0 && paused < total, 'it has begun at the beginning');
    // So much of the run in so many ms.
    await page.selectOption('.player select', '5');
    await page.evaluate(() => {
      const { player } = globalThis.playground.drawn;
      player.go_to(0);
      player.advance(50);
    });
    assert.ok(Math.abs(await time() / total - 0.01) < 1e-9);
    const kept = await time();
    await after(page, () => page.locator('#field-m').fill('16'));
    assert.equal(await time(), kept);
    await bench.press(page, 'Tab');
    await page.click('.player button[aria-label="to the end"]');
    await after(page, () => page.locator('#field-m').fill('12'));
    assert.equal(await page.evaluate(() => globalThis.playground.drawn.player.at_end), true, 'the end stays the end');
    await bench.silent();
  },

  'playground: with reduced motion it plays from op to op': async (bench) => {
    const page = await opened(bench, '#b=', { reducedMotion: 'reduce' });
    assert.match(await page.textContent('.player .rate'), /one op a second/);
    const times = await page.evaluate(async () => {
      const { player } = globalThis.playground.drawn;
      const seen = [];
      const { moved } = player;
      await new Promise((done) => {
        player.moved = () => { moved(); seen.push(player.time); if (seen.length === 3) done(null); };
        player.play();
      });
      player.pause();
      return { seen, stops: [0, ...player.stops.slice(0, 2)] };
    });
    assert.deepEqual(times.seen, times.stops);
    await bench.silent();
  },

  'playground: a language model on a cluster has the figures of the command, with their ranges': async (bench) => {
    const page = await opened(bench);
    assert.equal(await page.isVisible('.language-model'), false);
    await after(page, () => page.getByRole('button', { name: 'Llama 3 70B on 64 H100' }).click());
    assert.deepEqual([await page.inputValue('#field-model'), await page.inputValue('#field-cluster')],
      ['llama3-70b@h100', 'h100x8*8']);
    assert.equal(await page.isVisible('#field-F'), false, 'the model says its times');
    assert.equal(await page.isVisible('#field-bandwidth'), false, 'the cluster says its links');
    const answers = await native_answers(bench, page);
    assert.equal(answers[0].devices, 64);
    assert.deepEqual(await steps(page), answers.map((one) => one.step_time_ps));
    const cells = (figure) => page.$$eval(`td[data-figure="${figure}"]`, (all) => all.map((one) => one.textContent));
    const numbers = (text) => text.replace(/\(.*\)| on pp\d/g, ' ').match(/[\d.]+/g).map(Number);
    const near = (said, exact, what) => assert.ok(Math.abs(said / exact - 1) < 0.006, `${what}: ${said}, not ${exact}`);
    for (const [i, one] of answers.entries()) {
      const [step, low, high] = numbers((await cells('step'))[i]);
      [[step, one.step_time_s], [low, one.step_low_s], [high, one.step_high_s]].forEach((pair) => near(...pair, 'step'));
      const tokens = numbers((await cells('tokens/s/GPU'))[i]);
      [one.tokens_per_second_per_device, one.tokens_per_second_low / 64, one.tokens_per_second_high / 64].forEach(
        (exact, k) => near(tokens[k], exact, 'tokens'));
      const mfu = numbers((await cells('MFU'))[i]);
      [one.mfu, one.mfu_low, one.mfu_high].forEach((exact, k) => near(mfu[k], exact * 100, 'MFU'));
      const peak = numbers((await cells('peak memory'))[i]);
      [Math.max(...one.per_device.map((device) => device.peak_bytes)), one.peak_low_bytes, one.peak_high_bytes].forEach(
        (exact, k) => near(peak[k], exact / 1e9, 'memory'));
    }
    // The degrees are fields, and the address has them.
    await after(page, () => page.locator('#field-dp').fill('2'));
    await after(page, () => page.locator('#field-p').fill('4'));
    await after(page, () => page.selectOption('#field-zero', '1'));
    assert.deepEqual(await steps(page), await native_steps(bench, page));
    const [{ degrees }] = await native_answers(bench, page);
    assert.deepEqual([degrees.tp, degrees.pp, degrees.dp, degrees.zero], [8, 4, 2, '1']);
    const other = await opened(bench, await page.evaluate(() => location.hash));
    assert.deepEqual(await steps(other), await steps(page));
    assert.equal(await other.inputValue('#field-zero'), '1');
    assert.deepEqual(await bench.axe(other), []);
    await after(page, () => page.selectOption('#field-trace', ''));
    assert.equal(await page.isVisible('#field-F'), true);
    assert.deepEqual(await steps(page), await native_steps(bench, page));
    await bench.silent();
  },

  'playground: the engine\'s sentence on a wrong value stands at its field': async (bench) => {
    const page = await opened(bench, '#trace=model:llama3-8b@h100&cluster=h100x8&p=4&tp=2&b=');
    const said = () => page.$$eval('.wrong', (all) => all.filter((one) => one.checkVisibility()).map(
      (one) => [one.id.replace('wrong-', ''), one.textContent]));
    assert.deepEqual(await said(), []);
    for (const [key, wrong, right, sentence] of [
      ['model', 'llama3-9b@h100', 'llama3-8b@h100', /no model is called 'llama3-9b'.*did you mean/],
      ['model', 'llama3-8b@h10', 'llama3-8b@h100', /no device is called 'h10'.*did you mean "h100"/],
      ['cluster', 'h10x8', 'h100x8', /there is no cluster "h10x8"/],
      ['precision', 'bf1', 'bf16', /no precision is called 'bf1'/],
      ['tp', '3', '2', /multiple of tp/],
    ]) {
      const field = page.locator(`#field-${key}`);
      const put = (value) => after(page, async () => { await field.fill(value); await field.blur(); });
      await put(wrong);
      const [[where, words], ...more] = await said();
      assert.equal(where, key);
      assert.match(words, sentence);
      assert.deepEqual(more, []);
      assert.match(await page.textContent('.notes'), /The diagram is that of the last case that ran/);
      assert.equal(await field.getAttribute('aria-invalid'), 'true');
      assert.equal(await field.getAttribute('aria-describedby'), `wrong-${key}`);
      await put(right);
      assert.deepEqual(await said(), []);
      assert.equal(await field.getAttribute('aria-invalid'), null);
    }
    await bench.silent();
  },

  'playground: axe finds nothing serious, with a deadlock and in both themes': async (bench) => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await opened(bench, '', { colorScheme });
      assert.deepEqual(await bench.axe(page), []);
      await after(page, () => page.fill('textarea.program', stuck));
      assert.deepEqual(await bench.axe(page), []);
    }
    await bench.silent();
  },

  'playground: names from files are text': async (bench) => {
    const page = await opened(bench);
    const name = '<img src=x onerror=alert(1)>.slp';
    await after(page, () => drop(page, name, stuck.replace('microbatches', 'schedule: <b>x</b>\nmicrobatches')));
    assert.equal(await page.locator('main img, main b').count(), 0);
    await bench.silent();
  },
};
