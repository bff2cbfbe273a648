// Whether the engine of the playground says what the native one says, byte for byte.
//   node engine.test.mjs ENGINE.js NATIVE_ASK STAGELINE [--speed]
// The last line is "N passed, M failed".
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';

const [script, native, command, ...flags] = process.argv.slice(2).map((word) =>
  (word.startsWith('--') ? word : resolve(word)));
const load = createRequire(import.meta.url)(script);
const engine = await load({ wasmBinary: readFileSync(script.replace(/\.js$/, '.wasm')) });
engine.FS.mkdir('/dropped');

function put(text) {
  const bytes = engine.lengthBytesUTF8(text) + 1;
  const at = engine._malloc(bytes);
  engine.stringToUTF8(text, at, bytes);
  return at;
}

function ask_engine(what, text) {
  const places = [put(what), put(text)];
  const reply = engine.UTF8ToString(engine._stageline_ask(...places));
  places.forEach((at) => engine._free(at));
  return reply;
}

function ask_native(what, text, cwd) {
  return execFileSync(native, [what], { input: text, cwd, maxBuffer: 1 << 30, encoding: 'utf8' });
}

let passed = 0;
let failed = 0;

function check(name, said, expected) {
  if (said === expected) {
    ++passed;
    return;
  }
  ++failed;
  let at = 0;
  while (at < said.length && said[at] === expected[at]) ++at;
  console.log(`${name}: differs from byte ${at} on`);
  console.log(`  wasm   …${JSON.stringify(said.slice(Math.max(0, at - 60), at + 60))}`);
  console.log(`  native …${JSON.stringify(expected.slice(Math.max(0, at - 60), at + 60))}`);
}

function same(name, what, question) {
  const text = typeof question === 'string' ? question : JSON.stringify(question);
  try {
    check(name, ask_engine(what, text), ask_native(what, text));
  } catch (error) {
    ++failed;
    console.log(`${name}: ${error.stack ?? error}`);
  }
}

const names = JSON.parse(ask_native('names', ''));
same('names', 'names', '');

// All schedules at several sizes, with every span.
const uniform = 'uniform:layers=16,forward=1.1ms,input_grad=0.9ms,weight_grad=0.7ms,output=8MB,' +
  'weights=100MB,stash=30MB,update=0.3ms';
for (const { name } of names.schedules) {
  for (const [devices, microbatches] of [[2, 4], [4, 8], [8, 16]]) {
    const question = {
      trace: uniform, devices, microbatches, link: '50GB/s,5us', memory: '16GB', schedule: name,
      timeline: true,
    };
    same(`${name} on ${devices} with ${microbatches}`, 'answer', question);
    if (devices === 4) {
      same(`text of ${name}`, 'program', question);
      same(`order of ${name}`, 'compute', question);
    }
  }
}
for (const { name } of names.traces) {
  same(`trace ${name}`, 'answer',
    { trace: name, devices: 4, microbatches: 8, link: '12GB/s,5us', schedules: '1f1b,zb_h1' });
}
const questions = {
  'a language model': {
    trace: 'model:gpt3-175b@h100', cluster: 'h100x8*4', tp: 8, pp: 4, microbatches: 16,
    schedules: ['1f1b', 'zb_h1'], tokens: '300B', price: 2.5,
  },
  'a language model with replicas that divide its state': {
    trace: 'model:llama3-70b@h100', cluster: 'h100x8*8', tp: 8, pp: 4, dp: 2, zero: '1', sequence_parallel: true,
    precision: 'bf16', microbatches: 16, microbatch_size: 1, schedule: 'zb_v',
  },
  'convolutions that do not fit': {
    trace: 'model:resnet50@v100,batch=16', cluster: 'v100x4-pcie', microbatches: 32,
    schedules: ['gpipe', '1f1b'], memory: '2GB',
  },
  'asynchronous ones': {
    trace: 'resnet50-cpu', devices: 4, schedules: 'pipedream,pipedream_2bw', microbatches: 16,
  },
  'blocking messages': { trace: uniform, devices: 4, messages: 'blocking', schedule: 'gpipe' },
  'recomputation': { trace: uniform, devices: 4, recompute: 'full', schedule: '1f1b', microbatches: 8 },
  'offloading': {
    trace: uniform, devices: 4, offload: 'all', host_link: '16GB/s,5us', host_memory: '64GB',
    schedule: '1f1b',
  },
  'a search for the cut': {
    trace: 'resnet50-cpu', devices: 3, partition: 'simulated:most=40', schedule: '1f1b',
    microbatches: 6, link: '1GB/s,10us',
  },
  'a slow device': { trace: uniform, devices: 4, slow: 'gpu2:1.25', schedule: 'list' },
};
for (const [name, question] of Object.entries(questions)) same(name, 'answer', question);

// Bad input.
const bad = {
  'no JSON': '{"trace": ',
  'no key': '{}',
  'a key that is unknown': '{"trace": "uniform", "devces": 4}',
  'a schedule that is unknown': { trace: 'uniform', schedule: '1f2b' },
  'a knob that is unknown': { trace: 'uniform', schedule: 'interleaved_1f1b:chunk=2' },
  'devices that do not suit': { trace: uniform, devices: 3, schedule: 'dualpipe', microbatches: 8 },
  'a link without unit': { trace: 'uniform', link: '12,5us' },
  'a trace that is unknown': { trace: 'resnet51' },
  'too few layers': { trace: 'uniform:layers=2', devices: 4 },
};
const numbers = ['1e-400', '1e400', '1e-320', 'inf', 'nan', '.5', '5.', '-.', '1e', '1e+', '0x10',
  '+1', ' 1', '1.5e3', '2e-324', '-0', '1_0', '0.1', '123456789.123456789', '1e-7', '9e18', ''];
for (const number of numbers) {
  bad[`a link of "${number}"`] = { trace: 'uniform', devices: 2, link: `${number}GB/s,5us` };
  bad[`a forward of "${number}"`] = { trace: `uniform:forward=${number}ms`, devices: 2 };
}
for (const [name, question] of Object.entries(bad)) same(name, 'answer', question);
same('a question that is unknown', 'anser', '');

// Program texts.
const good = JSON.parse(ask_native('compute',
  JSON.stringify({ trace: uniform, devices: 2, microbatches: 3, schedule: '1f1b' }))).text;
const stuck = `stageline-program 1
microbatches: 2
stage 0: gpu0
stage 1: gpu1
gpu0: 0F0 0B0 0F1 0B1
gpu1: 1F1 1F0 1B0 1B1
`;
const texts = {
  'a good program': good,
  'a deadlock': stuck,
  'an op that is none': good.replace('0F1', '0X1'),
  'an op on the wrong device': good.replace('gpu0: 0F0', 'gpu0: 1F0'),
  'an op twice': good.replace('0F1', '0F0'),
  'no program': 'schedule',
  'nothing': '',
  'other letters': good.replace('gpu0: 0F0', 'gpu0: Ω 0F0 \u202e'),
};
for (const [name, text] of Object.entries(texts)) {
  same(`check of ${name}`, 'check', text);
  same(`run of ${name}`, 'answer', { trace: uniform, program: text, timeline: true });
}

// Files, by the same name on both sides.
const folder = mkdtempSync(join(tmpdir(), 'stageline-playground-'));
function dropped(name, content) {
  const path = join(folder, name);
  writeFileSync(path, content);
  engine.FS.writeFile(`/dropped/${name}`, content);
  engine.FS.chdir('/dropped');
  try {
    check(`file ${name}`, ask_engine('open', name), ask_native('open', name, folder));
  } catch (error) {
    ++failed;
    console.log(`file ${name}: ${error.stack ?? error}`);
  }
}
const said = (...words) => spawnSync(command, words, { cwd: folder, encoding: 'utf8' });
try {
  said('program', uniform, '--devices', '4', '--microbatches', '6', '--format', 'pytorch', '--out',
    'schedule.csv');
  said('draw', uniform, '--devices', '2', '--microbatches', '3', '--chrome', 'chrome.json');
  said('simulate', uniform, '--devices', '2', '--json', 'outcome.json', '--timeline');
  for (const name of ['schedule.csv', 'chrome.json', 'outcome.json']) {
    dropped(name, readFileSync(join(folder, name)));
  }
  dropped('program.slp', good);
  dropped('stuck.slp', stuck);
  dropped('bad.json', '{"layers": 3}');
  dropped('empty.json', '');
  for (const file of flags.filter((flag) => flag.startsWith('--file='))) {
    const path = file.slice('--file='.length);
    const bytes = readFileSync(path);
    dropped(basename(path).replace(/\.gz$/, ''), path.endsWith('.gz') ? gunzipSync(bytes) : bytes);
  }

  // The row of an answer is what the command writes.
  const row = JSON.parse(ask_engine('answer', JSON.stringify(
    { trace: uniform, devices: 4, microbatches: 8, schedule: 'zb_h1', link: '50GB/s,5us' }))).rows[0];
  const outcome = JSON.parse(said('simulate', uniform, '--devices', '4', '--microbatches', '8',
    '--schedule', 'zb_h1', '--link', '50GB/s,5us', '--json', '-').stdout);
  check('simulate --json', JSON.stringify(row), JSON.stringify(outcome));
} finally {
  rmSync(folder, { recursive: true });
}

if (flags.includes('--speed')) {
  for (const [what, question] of [
    ['answer', { trace: uniform, devices: 8, microbatches: 64, schedule: '1f1b' }],
    ['answer', { trace: uniform, devices: 8, microbatches: 64, schedule: '1f1b', timeline: true }],
    ['answer', { trace: uniform, devices: 8, microbatches: 32, schedule: 'zb_h1' }],
    ['answer', { trace: uniform, devices: 8, microbatches: 2048, schedule: '1f1b' }],
  ]) {
    const text = JSON.stringify(question);
    const times = 12;
    let fastest = Infinity;
    for (let i = 0; i < times; ++i) {
      const started = performance.now();
      ask_engine(what, text);
      fastest = Math.min(fastest, performance.now() - started);
    }
    const alone = Number(spawnSync(native, [what, String(times)],
      { input: text, encoding: 'utf8', maxBuffer: 1 << 30 }).stderr);
    console.log(`${question.schedule} ${question.devices} × ${question.microbatches}` +
      `${question.timeline ? ' with spans' : ''}: ${fastest.toFixed(2)} ms, ` +
      `${(fastest / alone).toFixed(2)} times native (${alone.toFixed(2)} ms)`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
