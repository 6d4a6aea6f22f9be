import assert from "node:assert/strict";
import { test } from "node:test";
import { FADE_MS, MAX_BUFFER_MS, MAX_QUEUED_SECONDS, MIN_BUFFER_MS, PlaybackQueue, type PlaybackReport } from "../src/audio/playback-queue";
import { FLUSH, LAST, PCM16, PREFIX_BYTES, RATE_16K } from "../src/socket/frames";

const RATE = 48_000;

function frame(generation: number, ms: number, { last = false, kind = PCM16, value = 8_192, rate = 24_000 } = {}): ArrayBuffer {
  const samples = kind === PCM16 ? (rate * ms) / 1000 : 0;
  const buffer = new ArrayBuffer(PREFIX_BYTES + samples * 2);
  const view = new DataView(buffer);
  view.setUint8(0, 1);
  view.setUint8(1, kind);
  view.setUint16(2, (last ? LAST : 0) | (rate === 16_000 ? RATE_16K : 0), true);
  view.setUint32(4, generation, true);
  new Int16Array(buffer, PREFIX_BYTES).fill(value);
  return buffer;
}

function make(): { queue: PlaybackQueue; reports: PlaybackReport[]; read: (ms: number) => Float32Array } {
  const reports: PlaybackReport[] = [];
  const queue = new PlaybackQueue(RATE, (report) => reports.push(report));
  const read = (ms: number): Float32Array => {
    const out = new Float32Array((RATE / 1000) * ms);
    for (let at = 0; at < out.length; at += 128) queue.read(out.subarray(at, Math.min(at + 128, out.length)));
    return out;
  };
  return { queue, reports, read };
}

function loudest(samples: Float32Array): number {
  return samples.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
}

function steepest(samples: Float32Array): number {
  return samples.reduce((most, x, i) => (i === 0 ? most : Math.max(most, Math.abs(x - (samples[i - 1] as number)))), 0);
}

test("speech begins once 60 ms are there, not before", () => {
  const { queue, read } = make();
  queue.push(frame(1, 20));
  queue.push(frame(1, 20));
  assert.equal(loudest(read(20)), 0);
  queue.push(frame(1, 20));
  assert.ok(loudest(read(20)) > 0.2);
});

test("a reply shorter than the buffer is played as soon as its last frame is there", () => {
  const { queue, reports, read } = make();
  queue.push(frame(1, 20, { last: true }));
  assert.ok(loudest(read(30)) > 0.2);
  assert.deepEqual(reports.map(({ state }) => state), ["playing", "finished"]);
});

test("a reply whose frames stop coming is played after 200 ms all the same", () => {
  const { queue, read } = make();
  queue.push(frame(1, 20));
  assert.equal(loudest(read(200)), 0);
  assert.ok(loudest(read(20)) > 0);
});

test("what was played is told at the first sample, each second, and at the end", () => {
  const { queue, reports, read } = make();
  for (let i = 0; i < 125; i++) queue.push(frame(3, 20, { last: i === 124 }));
  read(2600);
  assert.deepEqual(reports.map(({ state }) => state), ["playing", "playing", "playing", "finished"]);
  assert.ok((reports[0]?.played_ms ?? 99) <= 3);
  assert.ok(Math.abs((reports[1]?.played_ms ?? 0) - 1000) <= 3);
  assert.ok(Math.abs((reports[3]?.played_ms ?? 0) - 2500) <= 2);
});

test("a flush is silence within its fade, and tells what was heard", () => {
  const { queue, reports, read } = make();
  for (let i = 0; i < 50; i++) queue.push(frame(1, 20));
  read(300);
  queue.push(frame(1, 0, { kind: FLUSH }));
  const after = read(50);
  const fade = (FADE_MS * RATE) / 1000;
  assert.equal(loudest(after.subarray(fade)), 0);
  assert.ok(steepest(after) < 0.02, "a fade, not a click");
  const flushed = reports.at(-1);
  assert.equal(flushed?.state, "flushed");
  assert.ok(Math.abs(flushed.played_ms - 305) <= 2, `${flushed.played_ms}`);
  assert.equal(queue.queuedMs, 0);
});

test("no frame of a flushed generation, or of one before it, is heard afterwards", () => {
  const { queue, read } = make();
  queue.push(frame(2, 100));
  queue.push(frame(2, 0, { kind: FLUSH }));
  queue.push(frame(2, 100));
  queue.push(frame(1, 100));
  assert.equal(queue.dropped, 2);
  assert.equal(loudest(read(300)), 0);
  queue.push(frame(3, 100));
  assert.ok(loudest(read(50)) > 0.2);
});

test("a flush leaves the generations after it alone", () => {
  const { queue, reports, read } = make();
  queue.push(frame(1, 100));
  queue.push(frame(2, 100, { last: true }));
  read(20);
  queue.push(frame(1, 0, { kind: FLUSH }));
  assert.ok(loudest(read(150)) > 0.2);
  assert.deepEqual(reports.map(({ generation, state }) => [generation, state]), [[1, "playing"], [1, "flushed"], [2, "playing"], [2, "finished"]]);
});

test("a flush of what never came is answered with 0 ms", () => {
  const { queue, reports } = make();
  queue.push(frame(4, 0, { kind: FLUSH }));
  assert.deepEqual(reports, [{ generation: 4, played_ms: 0, state: "flushed" }]);
});

test("hush is silent at once and leaves the account to the server's flush", () => {
  const { queue, reports, read } = make();
  queue.push(frame(1, 500));
  read(200);
  queue.hush();
  assert.equal(loudest(read(50).subarray(FADE_MS * 48)), 0);
  queue.push(frame(1, 100));
  assert.equal(loudest(read(200)), 0);
  assert.equal(reports.length, 1);
  queue.push(frame(1, 0, { kind: FLUSH }));
  assert.equal(reports.at(-1)?.state, "flushed");
  assert.ok(Math.abs((reports.at(-1)?.played_ms ?? 0) - 205) <= 2);
});

test("a lost socket is silence within the fade, tells what was heard, and plays no more of that reply but the next one", () => {
  const { queue, reports, read } = make();
  for (let i = 0; i < 50; i++) queue.push(frame(2, 20));
  read(300);
  assert.equal(queue.cut(), 2);
  assert.equal(loudest(read(50).subarray((FADE_MS * RATE) / 1000)), 0);
  assert.deepEqual([reports.at(-1)?.state, reports.at(-1)?.generation], ["flushed", 2]);
  queue.push(frame(2, 200));
  assert.equal(loudest(read(100)), 0);
  queue.push(frame(3, 200));
  assert.ok(loudest(read(100)) > 0.2);
});

test("a lost socket with nothing to play tells nothing", () => {
  const { queue, reports, read } = make();
  queue.push(frame(1, 20, { last: true }));
  read(60);
  const before = reports.length;
  assert.equal(queue.cut(), null);
  assert.equal(reports.length, before);
});

test("an echo goes on after a lost socket under its one number", () => {
  const { queue, read } = make();
  queue.push(frame(1, 200, { rate: 16_000 }));
  read(100);
  queue.cut();
  read(20);
  queue.push(frame(1, 200, { rate: 16_000 }));
  assert.ok(loudest(read(100)) > 0.2);
});

test("an underrun fades out and in, and asks for a larger buffer", () => {
  const { queue, read } = make();
  queue.push(frame(1, 100));
  const before = queue.bufferMs;
  const first = read(150);
  for (let i = 0; i < 10; i++) queue.push(frame(1, 20));
  const second = read(100);
  assert.ok(loudest(second) > 0.2);
  assert.ok(steepest(first) < 0.02 && steepest(second) < 0.02, "no click on either side");
  assert.equal(queue.underruns, 1);
  assert.equal(queue.bufferMs, before + 20);
});

test("the buffer stays within its bounds", () => {
  const { queue, read } = make();
  for (let i = 0; i < 20; i++) {
    queue.push(frame(1, 300));
    read(400);
  }
  assert.equal(queue.bufferMs, MAX_BUFFER_MS);
  for (let generation = 2; generation < 40; generation++) {
    queue.push(frame(generation, 20, { last: true }));
    read(40);
  }
  assert.equal(queue.bufferMs, MIN_BUFFER_MS);
});

test("five minutes are kept; what comes on top is dropped and counted", () => {
  const { queue } = make();
  for (let seconds = 0; seconds < MAX_QUEUED_SECONDS; seconds++) queue.push(frame(1, 1000));
  assert.equal(queue.dropped, 0);
  queue.push(frame(1, 20));
  assert.equal(queue.dropped, 1);
});

test("an empty last frame ends its generation", () => {
  const { queue, reports, read } = make();
  queue.push(frame(1, 100));
  read(120);
  queue.push(frame(1, 0, { last: true }));
  read(20);
  assert.equal(queue.dropped, 0);
  assert.deepEqual(reports.map(({ state }) => state), ["playing", "finished"]);
});

test("what was sent at 16 kHz is heard at its own pitch and pace, beside replies at 24 kHz", () => {
  for (const rate of [16_000, 24_000]) {
    const { queue, reports, read } = make();
    for (let i = 0; i < 50; i++) {
      const sine = frame(1, 20, { rate, last: i === 49 });
      new Int16Array(sine, PREFIX_BYTES).forEach((_, n, samples) => (samples[n] = 8_192 * Math.sin(0.5 + (2 * Math.PI * 400 * (i * samples.length + n)) / rate)));
      queue.push(sine);
    }
    assert.equal(Math.round(queue.queuedMs), 1000);
    const heard = read(1_100);
    const crossings = heard.reduce((count, x, i) => count + (i > 0 && x >= 0 && (heard[i - 1] as number) < 0 ? 1 : 0), 0);
    assert.ok(Math.abs(crossings - 400) <= 10, `${rate} Hz: ${crossings} periods`);
    assert.ok(Math.abs((reports.at(-1)?.played_ms ?? 0) - 1000) < 5);
    assert.equal(queue.queuedMs, 0);
  }
});

test("a frame of another rate than its generation's is dropped and counted", () => {
  const { queue } = make();
  queue.push(frame(1, 20));
  queue.push(frame(1, 20, { rate: 16_000 }));
  assert.equal(queue.dropped, 1);
});

test("a frame that is none is dropped and counted", () => {
  const { queue } = make();
  queue.push(new ArrayBuffer(3));
  assert.equal(queue.dropped, 1);
});
