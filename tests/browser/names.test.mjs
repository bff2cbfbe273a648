// Names that come from files stay text.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const hostile = {
  'a script': '<script>globalThis.intruded = 1</script><img src=x onerror="globalThis.intruded = 1">',
  'the end of the data': '</script></style>--><script>globalThis.intruded = 1</script>',
  quotes: `"'\`&quot;&lt;\\u003c\${globalThis.intruded = 1}`,
  'from right to left': 'model\u202egnihtyreve\u2066\u200f אבג',
  'ten thousand letters': 'x'.repeat(10_000),
};

export const tests = {};
for (const [kind, name] of Object.entries(hostile)) {
  tests[`${kind} in the names of model and cluster`] = async (bench) => {
    const trace = path.join(bench.folder, 'hostile.json');
    const cluster = path.join(bench.folder, 'hostile-cluster.json');
    bench.run('import', 'uniform:layers=2,forward=1ms', '--out', trace, '--quiet');
    const model = JSON.parse(readFileSync(trace, 'utf8'));
    model.name = name;
    writeFileSync(trace, JSON.stringify(model));
    const h100 = JSON.parse(readFileSync(path.join(bench.root, 'traces/data/clusters/h100x8.json'),
      'utf8'));
    writeFileSync(cluster, JSON.stringify({ format: h100.format, name, kinds: h100.kinds,
      devices: ['a', 'b'].map((one) => ({ name: one, kind: h100.kinds[0].name })) }));
    bench.written.clear();
    const words = ['draw', trace, '--schedule', '1f1b', '--devices', '2', '--microbatches', '3',
      '--cluster', cluster];
    const page = await bench.open(bench.html(...words));
    await page.focus('.frame');
    await bench.press(page, 'j', 'i', 'c');
    await page.click('details.table summary');
    assert.equal(await page.evaluate(() => globalThis.intruded), undefined);
    assert.equal(await page.locator('body img, section script').count(), 0);
    const title = await page.locator('h1').textContent();
    assert.ok(title.includes(name), title.slice(0, 200));
    assert.ok((await page.locator('footer').textContent()).includes(name));
    assert.ok((await page.title()).includes(name.slice(0, 5)));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, 'the page does not become wider than the window');
    bench.written.clear();
    await bench.silent();
  };
}
