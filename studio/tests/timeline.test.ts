import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEvent, Waveform } from "../src/sessions/api";
import { AXIS, BOXES, boxOf, GUTTER, hitAt, MARGIN, rowOf, timeOf, xOf } from "../src/sessions/geometry";
import { layout } from "../src/sessions/layout";
import { pinched } from "../src/sessions/pointer";
import { tickLabel } from "../src/sessions/timeline-drawing";
import { peak } from "../src/sessions/waves";

const FRAME = { view: { from: 0, to: 10_000 }, width: 1000 + GUTTER + MARGIN };

test("a time and its place on the screen are each other's", () => {
  for (const at of [0, 1234, 10_000]) assert.ok(Math.abs(timeOf(xOf(at, FRAME), FRAME) - at) < 1e-6);
});

test("lanes lie below the axis and never over each other", () => {
  let below = AXIS;
  for (const { top, height } of BOXES) {
    assert.ok(top >= below);
    below = top + height;
  }
});

test("the pointer finds the mark, the call and the gap that it is on", () => {
  const call = (ms: number, type: string, data: Record<string, unknown>, writer = "voice"): LogEvent => ({ seq: ms, id: "", type, v: 1, writer, visibility: "i", ts: ms * 1000, cause: null, data });
  const timeline = layout([call(0, "session.requested", {}), call(2000, "tool.called", { call_id: "a", name: "add" }), call(4000, "tool.completed", { call_id: "a" }), call(10_000, "session.ended", {})]);
  const tools = timeline.spans[0];
  assert.ok(tools);
  const { top } = rowOf(tools);
  assert.equal(hitAt(xOf(3000, FRAME), top + 4, timeline, [], FRAME).span, tools);
  assert.equal(hitAt(xOf(2004, FRAME), boxOf("Events").top + 5, timeline, [], FRAME).mark?.index, 1);
  assert.deepEqual(hitAt(xOf(3000, FRAME), boxOf("Events").top + 5, timeline, [], FRAME), {});
  const gap = { kind: "worker" as const, from: 5000, to: 5000, title: "", why: [], index: 0 };
  assert.equal(hitAt(xOf(5030, FRAME), boxOf("Worker").top + 5, timeline, [gap], FRAME).gap, gap);
});

test("two fingers zoom around what is between them, and move it", () => {
  const view = { from: 0, to: 10_000 };
  const wide = pinched(view, [GUTTER + 400, GUTTER + 600], [GUTTER + 300, GUTTER + 700], FRAME.width, 10_000);
  assert.ok(Math.abs(wide.from - 2500) < 1 && Math.abs(wide.to - 7500) < 1, JSON.stringify(wide));
  const moved = pinched(wide, [GUTTER + 300, GUTTER + 700], [GUTTER + 400, GUTTER + 800], FRAME.width, 10_000);
  assert.ok(Math.abs(moved.from - 2000) < 1, JSON.stringify(moved));
});

test("a pixel of a waveform shows the least and the greatest sample in it, and nothing where there was no audio", () => {
  const wave: Waveform = { recorded: true, source: "record", from_ms: 1000, to_ms: 2000, complete: true, low: [-3, null, -9, -1, -2], high: [3, null, 5, 8, 2] };
  assert.deepEqual(peak(wave, 1000, 1200), [-3, 3]);
  assert.equal(peak(wave, 1200, 1400), null);
  assert.deepEqual(peak(wave, 1000, 2000), [-9, 8]);
  assert.deepEqual(peak(wave, 1450, 1460), [-9, 5]);
});

test("times on the axis have the unit that their distance asks for", () => {
  assert.deepEqual([tickLabel(250, 2000), tickLabel(1500, 10_000), tickLabel(45_000, 60_000), tickLabel(605_000, 1_800_000)], ["250 ms", "1.5 s", "45 s", "10:05"]);
});
