import assert from "node:assert/strict";
import { test } from "node:test";
import { Resampler } from "../src/audio/resampler";

function tone(rate: number, frequency: number, seconds: number): Float32Array {
  return Float32Array.from({ length: Math.round(rate * seconds) }, (_, i) => Math.sin((2 * Math.PI * frequency * i) / rate));
}

function resample(from: number, to: number, input: Float32Array, block = 128): Float32Array {
  const resampler = new Resampler(from, to);
  const output = new Float32Array(resampler.outputsFor(input.length) + 8);
  let written = 0;
  for (let at = 0; at < input.length; at += block) {
    written += resampler.process(input, at, Math.min(block, input.length - at), output, written);
  }
  return output.subarray(0, written);
}

/** Decibels of full scale, past the first and last 50 ms. */
function decibels(samples: Float32Array, rate: number): number {
  const edge = Math.round(rate * 0.05);
  const body = samples.subarray(edge, samples.length - edge);
  return 10 * Math.log10(2 * body.reduce((sum, x) => sum + x * x, 0) / body.length + 1e-20);
}

/** Amplitude in dB of one frequency. */
function at(samples: Float32Array, rate: number, frequency: number): number {
  const edge = Math.round(rate * 0.05);
  const body = samples.subarray(edge, samples.length - edge);
  let [real, imaginary, weight] = [0, 0, 0];
  body.forEach((x, i) => {
    const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / body.length);
    real += x * window * Math.cos((2 * Math.PI * frequency * i) / rate);
    imaginary += x * window * Math.sin((2 * Math.PI * frequency * i) / rate);
    weight += window;
  });
  return 20 * Math.log10((2 * Math.hypot(real, imaginary)) / weight + 1e-20);
}

for (const from of [44_100, 48_000, 96_000]) {
  test(`a 1 kHz tone at ${from} Hz comes out at 16 kHz unchanged within 0.1 dB`, () => {
    const output = resample(from, 16_000, tone(from, 1000, 1));
    assert.ok(Math.abs(output.length - 16_000) <= 1, `${output.length} samples`);
    assert.ok(Math.abs(at(output, 16_000, 1000)) < 0.1);
  });

  test(`a tone above 9 kHz at ${from} Hz is not heard as an alias: at least 70 dB down`, () => {
    for (const frequency of [9_000, 11_000, 15_000, 20_000]) {
      const left = decibels(resample(from, 16_000, tone(from, frequency, 1)), 16_000);
      assert.ok(left < -70, `${frequency} Hz leaves ${left.toFixed(1)} dB`);
    }
  });
}

for (const to of [44_100, 48_000]) {
  test(`a 3 kHz tone at 24 kHz is played at ${to} Hz without an image above -70 dB`, () => {
    const output = resample(24_000, to, tone(24_000, 3000, 1));
    assert.ok(Math.abs(at(output, to, 3000)) < 0.1);
    assert.ok(at(output, to, 21_000) < -70, `${at(output, to, 21_000)} dB`);
  });
}

test("speech up to 6.5 kHz passes within 1 dB", () => {
  const level = at(resample(48_000, 16_000, tone(48_000, 6_500, 1)), 16_000, 6_500);
  assert.ok(Math.abs(level) < 1, `${level} dB`);
});

test("the size of the blocks does not change the sound", () => {
  const input = tone(44_100, 440, 0.3);
  assert.deepEqual(resample(44_100, 16_000, input, 128), resample(44_100, 16_000, input, 37));
});

test("after a reset nothing is left of the signal before", () => {
  const resampler = new Resampler(48_000, 16_000);
  const output = new Float32Array(400);
  resampler.process(tone(48_000, 440, 0.01), 0, 480, output, 0);
  resampler.reset();
  const count = resampler.process(new Float32Array(480), 0, 480, output, 0);
  assert.ok(output.subarray(0, count).every((x) => x === 0));
});

test("a rate that no device has is refused", () => {
  assert.throws(() => new Resampler(0, 16_000), RangeError);
  assert.throws(() => new Resampler(44_100.5, 16_000), RangeError);
});
