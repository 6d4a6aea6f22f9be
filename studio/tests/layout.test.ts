import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEvent } from "../src/sessions/api";
import { lastBefore, layout, spentIn, stateAt, ticks } from "../src/sessions/layout";
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

test("a request for approval and the steps of a run are spans among the tools, with what came of them", () => {
  const { spans } = layout([
    event(0, "tools", "approval.requested", { approval_id: "approval-a", name: "delete_macro" }),
    event(10, "tools", "approval.ended", { approval_id: "approval-a", name: "delete_macro", outcome: "denied" }),
    event(20, "tools", "run.step_started", { run_id: "r", step: "one", attempt: 1 }),
    event(30, "tools", "run.step_failed", { run_id: "r", step: "one", attempt: 1 }),
    event(40, "tools", "run.step_started", { run_id: "r", step: "one", attempt: 2 }),
    event(50, "tools", "run.step_completed", { run_id: "r", step: "one", attempt: 2 }),
    event(60, "tools", "run.completed", { run_id: "r" }),
  ]);
  assert.deepEqual(spans.filter(({ lane }) => lane === "Tools").map(({ from, to, label, kind, note }) => [from, to, label, kind, note]), [
    [0, 10, "Delete macro?", "task", "denied"],
    [20, 30, "one", "failed", "failed"],
    [40, 50, "one", "tool", "completed"],
  ]);
});

test("a call becomes speech, thinking, a tool and an interrupted reply, each with its time", () => {
  const { spans, end } = layout(CALL);
  assert.deepEqual(
    spans.map(({ lane, kind, from, to, label }) => [lane, kind, from, to, label]),
    [
      ["You", "speech", 1000, 2000, "What is two and two?"],
      ["Agent", "thinking", 2000, 3000, "Thinking"],
      ["Tools", "tool", 2500, 2600, "Calculate"],
      ["Agent", "cut", 3000, 3500, "Four"],
    ],
  );
  assert.equal(end, 3510);
});

test("every event has a mark, and what failed has one of its own kind", () => {
  const { marks } = layout([...CALL, event(3600, "tools", "tool.failed", { call_id: "d", name: "calculate" })]);
  assert.deepEqual(marks.map(({ index }) => index), [...CALL.keys(), CALL.length]);
  assert.deepEqual(marks.filter(({ failed }) => failed).map(({ at }) => at), [3600]);
});

test("a live session goes on after its newest event", () => {
  const { spans, end } = layout(CALL.slice(0, 3), 500);
  assert.deepEqual([end, spans[0]?.to], [1500, 1500]);
});

test("a turn's stages stand where they were, counted from the end of speech", () => {
  const asked = event(2300, "voice", "user.said", { text: "And?", source: "speech", turn: 1 });
  const over = event(4000, "voice", "turn.completed", { number: 1, reason: "completed", latency: { end_of_turn: 200, stt_final: 300, llm_first_token: 700 } });
  const { turns, spans } = layout([event(0, "gateway", "session.requested"), asked, over]);
  assert.deepEqual(turns.map(({ number, from }) => [number, from]), [[1, 2000]]);
  assert.deepEqual(spans.filter(({ lane }) => lane === "Latency").map(({ from, to, label, row }) => [from, to, label, row]), [
    [2000, 2200, "Turn end", 0],
    [2200, 2300, "Speech to text", 1],
    [2300, 2700, "First token", 2],
  ]);
});

test("workers and clients hold their lanes until they are gone", () => {
  const { spans } = layout([
    event(0, "gateway", "session.requested"),
    event(10, "voice", "session.owned", { worker: "a", term: 1 }),
    event(20, "gateway", "client.connected", { gateway: "g", connection: "g-1" }),
    event(5000, "gateway", "client.disconnected", { gateway: "g", connection: "g-1", reason: "" }),
    event(9000, "voice", "session.owned", { worker: "b", term: 2 }),
    event(9000, "voice", "session.restored", { worker: "b", term: 2, how: "reseeded", gap_ms: 3000 }),
    event(10_000, "voice", "session.ended"),
  ]);
  assert.deepEqual(spans.map(({ lane, label, from, to }) => [lane, label, from, to]), [
    ["Worker", "a", 10, 6000],
    ["Client", "g", 20, 5000],
    ["Worker", "b", 9000, 10_000],
  ]);
});

test("calls that run at once lie below each other", () => {
  const { spans } = layout([
    event(0, "voice", "tool.called", { call_id: "a", name: "one" }),
    event(10, "voice", "tool.called", { call_id: "b", name: "two" }),
    event(20, "tools", "tool.completed", { call_id: "a", name: "one" }),
    event(30, "voice", "tool.called", { call_id: "c", name: "three" }),
    event(40, "tools", "tool.interrupted", { call_id: "b", name: "two" }),
  ]);
  assert.deepEqual(spans.map(({ row, note, kind }) => [row, note, kind]), [[0, "completed", "tool"], [1, "interrupted", "failed"], [0, "running", "tool"]]);
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
  assert.deepEqual(layout([]), { spans: [], marks: [], turns: [], times: [], start: 0, end: 1000 });
});

test("ten thousand events are laid out within 100 ms of the processor's time", () => {
  const events = Array.from({ length: 10_000 }, (_, i) => event(i * 10, "voice", i % 2 === 0 ? "speech.started" : "speech.ended"));
  const began = process.cpuUsage();
  layout(events);
  const { user, system } = process.cpuUsage(began); // what the machine does beside is not the layout's
  assert.ok(user + system < 100_000, `${user + system} µs`);
});

test("ticks are round and far enough apart to be read", () => {
  assert.deepEqual(ticks({ from: 0, to: 10_000 }, 1000), [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000]);
  assert.deepEqual(ticks({ from: 130, to: 330 }, 400), [150, 200, 250, 300]);
  assert.deepEqual(ticks({ from: 0, to: 1_800_000 }, 600), [0, 300_000, 600_000, 900_000, 1_200_000, 1_500_000, 1_800_000]);
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

const TEAM = [
  event(0, "gateway", "session.requested", { mode: "local", agent: "advice" }),
  event(40, "voice", "session.started", { agent: "triage", voice: "Aoede", model: "gemini-live" }),
  event(1000, "voice", "handoff.started", { source: "triage", target: "advisor", reason: "a loan" }),
  event(1200, "voice", "handoff.completed", { source: "triage", target: "advisor", voice: "joe", model: "claude" }),
  event(2000, "voice", "turn.completed", { number: 1, usage: { input_tokens: 800, output_tokens: 20, microdollars: 5400 } }),
];

test("who speaks is a lane of its own, with each handoff between", () => {
  const { spans } = layout(TEAM);
  assert.deepEqual(spans.filter(({ lane }) => lane === "Who").map(({ kind, from, to, label, note }) => [kind, from, to, label, note]), [
    ["heard", 40, 1000, "Triage", "voice Aoede · gemini-live"],
    ["handoff", 1000, 1200, "to Advisor", "a loan"],
    ["heard", 1200, 2000, "Advisor", "voice joe · claude"],
  ]);
  assert.deepEqual(spentIn(TEAM), { tokens: 820, microdollars: 5400 });
});

test("whoever has no name is known by the model", () => {
  const [span] = layout([event(0, "voice", "session.started", { model: "qwen", voice: "joe" })]).spans;
  assert.deepEqual([span?.label, span?.note], ["qwen", "voice joe"]);
});

test("a session without its model is restoring until it is there again", () => {
  const lost = [...TEAM, event(2100, "voice", "provider.lost", { provider: "gemini" })];
  assert.equal(stateAt(lost, lost.length - 1), "restoring");
  const back = [...lost, event(2400, "voice", "provider.connected", { provider: "gemini", resumed_by: "handle" })];
  assert.equal(stateAt(back, back.length - 1), "listening");
});
