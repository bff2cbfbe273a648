// Opens the pages that the command writes in a real browser, and asks them.
//
//   node tests/browser/run.mjs STAGELINE NODE_MODULES BROWSER FOLDER [WORD]
//
// Runs the tests of every *.test.mjs here whose file or name has WORD; pages are written to FOLDER.
// A file whose tests need what is not there says so by `needs`; they are skipped by name.
// The last line is "N passed, M failed[, K skipped]".
import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Bench } from './bench.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const [command, modules, browser, folder, word = ''] = process.argv.slice(2);
if (!folder) {
  console.error('usage: run.mjs STAGELINE NODE_MODULES BROWSER FOLDER [WORD]');
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const bench = new Bench({ command: path.resolve(command), modules: path.resolve(modules), browser,
  folder: path.resolve(folder), root: path.resolve(here, '../..') });
let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of readdirSync(here).filter((name) => name.endsWith('.test.mjs')).sort()) {
  const { tests, needs = '' } = await import(pathToFileURL(path.join(here, file)).href);
  for (const [name, test] of Object.entries(tests)) {
    if (!file.includes(word) && !name.includes(word)) continue;
    if (needs) {
      ++skipped;
      console.log(`skipped: ${name}: this machine lacks ${needs}`);
      continue;
    }
    try {
      await test(bench);
      ++passed;
    } catch (error) {
      ++failed;
      console.log(`failed: ${file}: ${name}\n${error.stack ?? error}`);
    }
    await bench.close_pages();
  }
}
await bench.end();
console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exit(failed ? 1 : 0);
