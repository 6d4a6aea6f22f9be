import assert from "node:assert/strict";
import { test } from "node:test";
import { Framer, POOL } from "../src/audio/framer";
import { FLUSH, INPUT_FRAME_BYTES, LAST, MAX_FRAME_BYTES, PCM16, PREFIX_BYTES, RATE_16K, readPrefix, samplesOf, VERSION, writePrefix } from "../src/socket/frames";

function frame(fields: { version?: number; kind?: number; flags?: number; generation?: number; bytes?: number } = {}): ArrayBuffer {
  const { version = VERSION, kind = PCM16, flags = 0, generation = 0, bytes = 4 } = fields;
  const buffer = new ArrayBuffer(PREFIX_BYTES + bytes);
  const view = new DataView(buffer);
  view.setUint8(0, version);
  view.setUint8(1, kind);
  view.setUint16(2, flags, true);
  view.setUint32(4, generation, true);
  return buffer;
}

test("a microphone frame has the sixteen bytes of the protocol, little-endian", () => {
  const buffer = new ArrayBuffer(INPUT_FRAME_BYTES);
  writePrefix(buffer, 0x01020304, 0x1_0000_0005);
  assert.deepEqual([...new Uint8Array(buffer, 0, 16)], [1, 1, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0]);
});

test("a reply frame's prefix is read, with the flag of the last one", () => {
  const prefix = readPrefix(frame({ flags: LAST, generation: 4_294_967_295 }));
  assert.equal(prefix?.last, true);
  assert.equal(prefix.generation, 4_294_967_295);
});

test("a frame is at 24 kHz unless its flag says 16 kHz", () => {
  assert.equal(readPrefix(frame({ flags: LAST }))?.rate, 24_000);
  assert.equal(readPrefix(frame({ flags: RATE_16K }))?.rate, 16_000);
});

test("the last frame of a reply may be empty", () => {
  assert.equal(readPrefix(frame({ flags: LAST, bytes: 0 }))?.last, true);
});

test("a flush has no payload", () => {
  assert.equal(readPrefix(frame({ kind: FLUSH, bytes: 0, generation: 7 }))?.generation, 7);
});

test("a frame that is short, odd, empty, too long, or of another version or kind is none", () => {
  for (const bad of [frame({ bytes: 3 }), frame({ bytes: 0 }), frame({ version: 2 }), frame({ kind: 9 }), new ArrayBuffer(15), new ArrayBuffer(MAX_FRAME_BYTES + 2)]) {
    assert.equal(readPrefix(bad), null);
  }
  assert.notEqual(readPrefix(frame({ bytes: MAX_FRAME_BYTES - PREFIX_BYTES })), null);
});

test("one second of microphone is fifty frames of 20 ms, counted from 0", () => {
  const sequences: number[] = [];
  let loudest = 0;
  const framer: Framer = new Framer(48_000, (made) => {
    sequences.push(readPrefix(made)?.sequence ?? -1);
    loudest = Math.max(loudest, ...samplesOf(made));
    framer.recycle(made);
  }, () => 0);
  for (let i = 0; i < 375; i++) framer.push(Float32Array.from({ length: 128 }, (_, n) => 0.5 * Math.sin((2 * Math.PI * 440 * (i * 128 + n)) / 48_000)));
  assert.deepEqual(sequences, Array.from({ length: 50 }, (_, i) => i));
  assert.ok(Math.abs(loudest - 16_384) < 500, `${loudest}`);
});

test("samples beyond full scale are limited, not wrapped", () => {
  const made: ArrayBuffer[] = [];
  const framer = new Framer(16_000, (buffer) => made.push(buffer), () => 0);
  framer.push(new Float32Array(640).fill(3));
  assert.equal(samplesOf(made[1]!)[100], 32_767);
});

test("where no buffer comes back, frames are dropped and counted, and the sequence shows the gap", () => {
  const kept: ArrayBuffer[] = [];
  const framer = new Framer(16_000, (buffer) => kept.push(buffer), () => 0);
  for (let i = 0; i < POOL + 3; i++) framer.push(new Float32Array(320));
  assert.equal(kept.length, POOL);
  assert.equal(framer.dropped, 3);
  framer.recycle(kept[0]!);
  framer.push(new Float32Array(320));
  assert.equal(readPrefix(kept.at(-1)!)?.sequence, POOL + 3);
});

test("the level is that of the samples since the last look", () => {
  const framer = new Framer(16_000, (buffer) => framer.recycle(buffer), () => 0);
  framer.push(new Float32Array(160).fill(0.25));
  assert.ok(Math.abs(framer.takeLevel() - 0.25) < 1e-6);
  assert.equal(framer.takeLevel(), 0);
});
