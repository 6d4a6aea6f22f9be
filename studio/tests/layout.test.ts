import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEvent } from "../src/sessions/api";
import { lastBefore, layout, stateAt, ticks } from "../src/sessions/layout";
import { pan, reveal, zoom } from "../src/sessions/timeline-keys";

let seq = 0;
function event(ms: number, writer: string, type: string, data: Record<string, unknown> = {}): LogEvent {
  seq += 1;
  return { seq, id: `e${seq}`, type, v: 1, writer, visibility: "i", ts: 1_700_000_000_000_000 + ms * 1000, cause: null, data };
}

const CALL = [
  event(0, "gateway", "session.requested", { mode: "local" }),
  event(40, "voice", "session.started"),
  event(1000, "voice", "speech.started"),
  event(2000, "voice", "speech.ended"),
  event(2300, "voice", "user.said", { text: "What is two and two?", source: "speech" }),
  event(2500, "voice", "tool.called", { call_id: "c", name: "calculate" }),
  event(2600, "tools", "tool.completed", { call_id: "c", name: "calculate" }),
  event(3000, "gateway", "playback.reported", { generation: 1, played_ms: 0, state: "playing" }),
  event(3500, "gateway", "playback.reported", { generation: 1, played_ms: 500, state: "flushed" }),
  event(3510, "voice", "agent.said", { generation: 1, text: "Four", unheard: " it is.", interrupted: true }),
];

test("a call becomes speech, thinking, a tool and an interrupted reply, each with its time", () => {
  const { spans, end } = layout(CALL);
  assert.deepEqual(
    spans.map(({ lane, kind, from, to, label }) => [lane, kind, from, to, label]),
    [
      ["You", "speech", 1000, 2000, "What is two and two?"],
      ["Agent", "thinking", 2000, 3000, "Thinking"],
      ["Tools", "tool", 2500, 2600, "calculate"],
      ["Agent", "cut", 3000, 3500, "Four"],
    ],
  );
  assert.equal(end, 3510);
});

test("every event has a mark in its writer's lane", () => {
  const { marks } = layout(CALL);
  assert.deepEqual([...new Set(marks.map(({ lane }) => lane))].sort(), ["gateway", "tools", "voice"]);
  assert.equal(marks.length, CALL.length);
});

test("what has no end yet lasts until the newest event", () => {
  const [span] = layout(CALL.slice(0, 3)).spans;
  assert.equal(span?.to, 1000);
});

test("a flush of what was never heard is no speech", () => {
  assert.deepEqual(layout([event(0, "gateway", "playback.reported", { generation: 1, played_ms: 0, state: "flushed" })]).spans, []);
});

test("the moment under the playhead has a state", () => {
  const { times } = layout(CALL);
  const states = [0, 50, 1500, 2100, 2550, 3200, 3505].map((at) => stateAt(CALL, lastBefore(times, at)));
  assert.deepEqual(states, ["connecting", "listening", "user_speaking", "thinking", "calling_tool", "speaking", "listening"]);
});

test("an empty log is an empty timeline of one second", () => {
  assert.deepEqual(layout([]), { spans: [], marks: [], times: [], end: 1000 });
});

test("ten thousand events are laid out within 100 ms", () => {
  const events = Array.from({ length: 10_000 }, (_, i) => event(i * 10, "voice", i % 2 === 0 ? "speech.started" : "speech.ended"));
  const began = performance.now();
  layout(events);
  assert.ok(performance.now() - began < 100, `${performance.now() - began} ms`);
});

test("ticks are round and far enough apart to be read", () => {
  assert.deepEqual(ticks({ from: 0, to: 10_000 }, 1000), [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000]);
  assert.deepEqual(ticks({ from: 130, to: 330 }, 400), [150, 200, 250, 300]);
});

test("zooming keeps the moment under the pointer in place, and stays within the session", () => {
  const view = zoom({ from: 0, to: 1000 }, 0.5, 250, 1000);
  assert.deepEqual(view, { from: 125, to: 625 });
  assert.deepEqual(zoom(view, 100, 250, 1000), { from: 0, to: 1000 });
  assert.equal(zoom(view, 0.000_01, 250, 1000).to - zoom(view, 0.000_01, 250, 1000).from, 20);
  assert.deepEqual(pan(view, 10_000, 1000), { from: 500, to: 1000 });
  assert.deepEqual(reveal(view, 300, 1000), view);
  assert.ok(reveal(view, 900, 1000).to >= 900);
});
