// Every kind of page: opens from disk, is silent, and is what it says.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const trace = 'model:resnet50@h100,batch=32';
export const pages = {
  'one schedule': ['simulate', trace, '--schedule', '1f1b', '--devices', '4', '--microbatches', '8',
    '--cluster', 'h100x8'],
  'several schedules': ['draw', trace, '--schedule', 'gpipe,zb_h1,dualpipe', '--devices', '4',
    '--microbatches', '8', '--cluster', 'h100x8'],
  'stale weights': ['draw', trace, '--schedule', 'pipedream', '--devices', '4', '--microbatches', '8'],
  'two devices without bytes': ['draw', 'uniform:layers=4', '--schedule', 'interleaved_1f1b',
    '--devices', '2', '--microbatches', '4'],
  'one op': ['draw', 'uniform:layers=1', '--schedule', 'naive', '--devices', '1', '--microbatches', '1'],
};

// The least font size of all text that is there.
function least_font() {
  let least = 1000;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const holder = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(holder.tagName)) {
      continue;
    }
    least = Math.min(least, parseFloat(getComputedStyle(holder).fontSize));
  }
  return least;
}

export const tests = {};
for (const [name, words] of Object.entries(pages)) {
  tests[`${name}: opens from disk, asks for nothing, says nothing`] = async (bench) => {
    const file = bench.html(...words);
    assert.ok(statSync(file).size < 1.5e6, 'a small page is under 1.5 MB');
    const page = await bench.open(file);
    assert.ok(await page.evaluate(least_font) >= 11, 'no text is smaller than 11 px');
    assert.equal(await page.locator('section').count() > 0, true);
    assert.equal(await page.locator('.failure').count(), 0);
    await bench.silent();
  };
}

Object.assign(tests, {
  'the policy of the page forbids every request, and inline code but its own': async (bench) => {
    const file = bench.html(...pages['one schedule']);
    const page = await bench.open(file);
    const policy = await page.getAttribute('meta[http-equiv="Content-Security-Policy"]', 'content');
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'/);
    const blocked = await page.evaluate(async () => {
      globalThis.intruded = false;
      const script = document.createElement('script');
      script.textContent = 'globalThis.intruded = true';
      document.body.append(script);
      const fetched = await fetch('https://example.org/').then(() => true, () => false);
      return !globalThis.intruded && !fetched;
    });
    assert.ok(blocked);
    await bench.close_pages(); // the browser says what it blocked
    bench.complaints = [];
  },

  'axe finds nothing serious, in light and dark, with an op selected and the table open': async (bench) => {
    for (const colorScheme of ['light', 'dark']) {
      for (const kind of ['one schedule', 'several schedules']) {
        const page = await bench.open(bench.html(...pages[kind]), { colorScheme });
        assert.deepEqual(await bench.axe(page), []);
        await page.focus('.frame');
        await bench.press(page, 'j', 'c');
        await page.click('details.table summary');
        await bench.settled(page);
        assert.deepEqual(await bench.axe(page), []);
      }
    }
    await bench.silent();
  },

  'overlay: both timelines on one axis, each op in the table, and axe finds nothing serious': async (bench) => {
    const modelled = bench.json('simulate', 'uniform:layers=4', '--devices', '2', '--microbatches', '4',
      '--timeline');
    writeFileSync(path.join(bench.folder, 'model.json'), JSON.stringify(modelled));
    bench.run('draw', 'uniform:layers=4', '--schedule', 'gpipe', '--devices', '2', '--microbatches', '4',
      '--chrome', 'other.json');
    const file = bench.html('overlay', 'model.json', 'other.json');
    const { per_op: ops } = bench.json('overlay', 'model.json', 'other.json');
    for (const colorScheme of ['light', 'dark']) {
      const page = await bench.open(file, { colorScheme });
      assert.equal((await page.getAttribute('.frame', 'aria-label')).split(';').length, 2);
      assert.equal(await page.locator('.section-table tbody tr').count(), ops.length);
      await page.focus('.frame');
      await bench.press(page, 'j');
      const op = await page.getAttribute('.details', 'data-op');
      assert.ok(ops.some((one) => one.op === op), op);
      assert.deepEqual(await bench.axe(page), []);
    }
    await bench.silent();
  },

  'the modules agree with their types': (bench) => {
    const tsc = path.join(bench.modules, 'typescript/bin/tsc');
    try {
      execFileSync(process.execPath, [tsc, '-p', path.join(bench.root, 'tests/browser/tsconfig.json')],
        { encoding: 'utf8' });
    } catch (error) {
      assert.fail(error.stdout);
    }
  },
});
