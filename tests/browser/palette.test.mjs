// Colours that stand for kinds are told apart, by all readers.
import assert from 'node:assert/strict';

// Machado, Oliveira and Fernandes 2009, "A physiologically-based model for simulation of color
// vision deficiency", severity 1; on linear RGB.
const vision = {
  usual: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116,
    1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294,
    0.968881],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367,
    0.3039],
};

const linear = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
  .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));

function lab([r, g, b]) {
  const xyz = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b,
    (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089];
  const [x, y, z] = xyz.map((one) => (one > 0.008856 ? Math.cbrt(one) : 7.787 * one + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function seen(colour, kind) {
  const rgb = linear(colour);
  const m = vision[kind];
  return lab([0, 3, 6].map((row) => Math.min(1, Math.max(0,
    m[row] * rgb[0] + m[row + 1] * rgb[1] + m[row + 2] * rgb[2]))));
}

/** The two nearest of the colours, in all themes and kinds of vision. */
function nearest(paints) {
  let best = { distance: Infinity };
  for (const theme of ['light', 'dark']) {
    for (const kind of Object.keys(vision)) {
      const all = Object.entries(paints).map(([name, paint]) => [name, seen(paint[theme], kind)]);
      for (let i = 0; i < all.length; ++i) {
        for (let k = 0; k < i; ++k) {
          const distance = Math.hypot(...all[i][1].map((one, at) => one - all[k][1][at]));
          if (distance < best.distance) {
            best = { distance, colours: `${all[i][0]} and ${all[k][0]}, ${theme}, ${kind}` };
          }
        }
      }
    }
  }
  return best;
}

const palette_of = (bench) => import('data:text/javascript,' + encodeURIComponent(
  bench.source('tools/report/page/web/palette.js')));

export const tests = {
  'the kinds of ops are told apart with any colour vision': async (bench) => {
    const { op_paints } = await palette_of(bench);
    const { distance, colours } = nearest(op_paints);
    assert.ok(distance >= 15, `${colours}: ${distance}`);
  },

  'the causes of idle time are told apart with any colour vision': async (bench) => {
    const { idle_paints } = await palette_of(bench);
    const { distance, colours } = nearest(idle_paints);
    assert.ok(distance >= 12, `${colours}: ${distance}`);
  },

  'labels can be read on their colour': async (bench) => {
    const { op_paints, pale_paints, stream_paints, wants_white } = await palette_of(bench);
    const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
    for (const paints of [op_paints, pale_paints, stream_paints]) {
      for (const [name, paint] of Object.entries(paints)) {
        for (const theme of ['light', 'dark']) {
          const ground = light(linear(paint[theme]));
          const ink = light(linear(wants_white(paint[theme]) ? '#ffffff' : '#14171c'));
          const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
          assert.ok(contrast >= 4, `${name}, ${theme}: ${contrast}`);
        }
      }
    }
  },
};
