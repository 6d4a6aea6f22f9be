import assert from "node:assert/strict";
import { test } from "node:test";
import { describeClose, microphoneError } from "../src/errors";
import { socketUrl } from "../src/socket/socket-worker";
import { span } from "../src/resume/news";
import { decode, type ServerMessage } from "../src/socket/protocol";
import { MAX_ENTRIES, type Said } from "../src/entries";
import { disconnected, INITIAL, receive, type Snapshot, typed } from "../src/state";

function fold(messages: ServerMessage[], from: Snapshot = INITIAL): Snapshot {
  return messages.reduce((snapshot, message, i) => receive(snapshot, message, i * 100), from);
}

function said(snapshot: Snapshot): [string, string, boolean][] {
  return snapshot.conversation.filter((entry): entry is Said => entry.kind === "said").map(({ role, text, final }) => [role, text, final]);
}

test("each partial replaces the one before it, and the final the last partial", () => {
  const snapshot = fold([
    { type: "transcript", role: "user", text: "what", final: false, turn: 1 },
    { type: "transcript", role: "user", text: "what time", final: false, turn: 1 },
    { type: "transcript", role: "user", text: "What time is it?", final: true, turn: 1, seq: 7 },
    { type: "transcript", role: "assistant", text: "It is", final: false, generation: 1 },
    { type: "transcript", role: "assistant", text: "It is noon.", final: true, generation: 1, seq: 9 },
  ]);
  assert.deepEqual(said(snapshot), [["user", "What time is it?", true], ["assistant", "It is noon.", true]]);
});

test("whether the audio of a call is kept is known from its beginning, after a reload, and not of the call after it", () => {
  const setUp = { type: "setup_complete", sessionId: "s", mode: "local", resumed: false } as const;
  const again = { type: "resumed", sessionId: "s", mode: "local", recovered: true, to: 9 } as const;
  const recorded = fold([{ ...setUp, recorded: true }]);
  assert.equal(recorded.recorded, true);
  assert.equal(fold([{ ...again, recorded: true }]).recorded, true);
  assert.equal(fold([setUp], recorded).recorded, false);
});

test("what goes on with a turn joins its line, and the answer that was withdrawn is not shown", () => {
  const snapshot = fold([
    { type: "transcript", role: "user", text: "And so,", final: true, turn: 1, seq: 7 },
    { type: "transcript", role: "assistant", text: "I am all", final: false, turn: 1, generation: 1 },
    { type: "transcript", role: "assistant", text: "", final: false, turn: 1, generation: 1 },
    { type: "transcript", role: "user", text: "my fellow", final: false, turn: 1 },
  ]);
  assert.deepEqual(said(snapshot), [["user", "And so,", true], ["user", "my fellow", false]]);
  const whole = fold([{ type: "transcript", role: "user", text: "my fellow Americans.", final: true, turn: 1, seq: 9, continues: true }], snapshot);
  assert.deepEqual(said(whole), [["user", "And so, my fellow Americans.", true]]);
  const alone = fold([{ type: "transcript", role: "user", text: "ask not.", final: true, turn: 3, seq: 9, continues: true }], INITIAL);
  assert.deepEqual(said(alone), [["user", "ask not.", true]]);
});

test("what was heard and goes nowhere is not shown any more, and what was typed stays", () => {
  const heard: ServerMessage = { type: "transcript", role: "user", text: "write the tests", final: false, turn: 2 };
  const snapshot = fold([heard, { type: "transcript", role: "user", text: "", final: false, turn: 2 }], typed(INITIAL, "hello"));
  assert.deepEqual(said(snapshot), [["user", "hello", true]]);
});

test("the same words said twice are kept twice", () => {
  const yes: ServerMessage = { type: "transcript", role: "user", text: "Yes.", final: true };
  assert.equal(said(fold([yes, yes])).length, 2);
});

test("what was typed is shown once, and takes its place in the log when the server says it", () => {
  const snapshot = fold([{ type: "transcript", role: "user", text: "hello", final: true, seq: 4 }], typed(INITIAL, "hello"));
  assert.equal(snapshot.conversation.length, 1);
  assert.equal((snapshot.conversation[0] as Said).seq, 4);
});

test("what a worker that died had only begun to hear or to say does not stay; over a provider's fault it does", () => {
  const begun = fold([
    { type: "transcript", role: "user", text: "Hello.", final: true, turn: 1, seq: 4 },
    { type: "transcript", role: "assistant", text: "I was ab", final: false, generation: 1 },
    { type: "transcript", role: "user", text: "and th", final: false, turn: 2 },
  ]);
  const restored = (cause: "worker" | "provider"): Snapshot => fold([{ type: "restored", how: "reseeded", cause, gap_ms: 3000, lost: [] }], begun);
  assert.deepEqual(said(restored("worker")), [["user", "Hello.", true]]);
  assert.deepEqual(said(restored("provider")), said(begun));
});

test("an interrupted reply keeps what was heard and what was not", () => {
  const [entry] = fold([{ type: "transcript", role: "assistant", text: "One, two,", unheard: " three.", interrupted: true, generation: 2 }]).conversation as Said[];
  assert.equal(entry?.unheard, " three.");
  assert.equal(entry.interrupted, true);
});

test("a result closes the call it names", () => {
  const call = (id: string): ServerMessage => ({ type: "function_call", name: "add", args: {}, server_handled: true, fn_call_id: id });
  const snapshot = fold([call("a"), call("b"), { type: "function_result", name: "add", result: { sum: 3 }, fn_call_id: "a" }, { type: "function_cancelled", name: "add", fn_call_id: "b" }]);
  assert.deepEqual(snapshot.conversation.map((entry) => (entry.kind === "call" ? [entry.id, entry.status, entry.ms] : null)), [["a", "done", 200], ["b", "cancelled", 200]]);
});

test("a task is shown from its start to its result", () => {
  const snapshot = fold([
    { type: "async_task_started", task_id: "t1", function: "set_timer" },
    { type: "async_task_complete", task_id: "t1", function: "set_timer", result: { error: "cancelled" } },
  ]);
  assert.deepEqual(snapshot.conversation.map((entry) => (entry.kind === "task" ? entry.status : null)), ["failed"]);
});

test("the conversation is bounded", () => {
  const snapshot = fold(Array.from({ length: MAX_ENTRIES + 5 }, (_, i): ServerMessage => ({ type: "text", text: `line ${i}` })));
  assert.equal(snapshot.conversation.length, MAX_ENTRIES);
  assert.equal((snapshot.conversation[0] as Said).text, "line 5");
});

test("after the socket closed nothing is running any more", () => {
  const open = fold([
    { type: "setup_complete", sessionId: "s", mode: "local", resumed: false },
    { type: "transcript", role: "assistant", text: "So", final: false },
    { type: "function_call", name: "add", args: {}, server_handled: true },
  ]);
  const snapshot = disconnected(open, describeClose(1012, "", false), null);
  assert.equal(snapshot.connection, "closed");
  assert.equal(snapshot.closed?.retryable, true);
  assert.ok(snapshot.conversation.every((entry) => (entry.kind === "said" ? entry.final : entry.kind === "call" && entry.status === "cancelled")));
});

const SET_UP: ServerMessage = {
  type: "setup_complete", sessionId: "s", mode: "local", resumed: false, agent: "triage", agents: ["triage", "advisor"], pipeline: "advice", voice: "Aoede", model: "gemini-live",
};

test("a handoff is one line, and from its completion on the other one speaks", () => {
  const before = fold([SET_UP, { type: "agent", phase: "started", from: "triage", to: "advisor", reason: "a loan" }]);
  assert.deepEqual(before.speaker, { agent: "triage", agents: ["triage", "advisor"], pipeline: "advice", voice: "Aoede", model: "gemini-live" });
  const words: ServerMessage[] = [
    { type: "transcript", role: "assistant", text: "One moment.", agent: "triage", generation: 1, final: true },
    { type: "agent", phase: "completed", from: "triage", to: "advisor", voice: "joe", model: "claude", ms: 9 },
    { type: "transcript", role: "user", text: "Hello?", final: true },
    { type: "transcript", role: "assistant", text: "So a lo", generation: 2, final: false },
  ];
  const { speaker, conversation } = fold(words, before);
  assert.deepEqual([speaker.agent, speaker.voice, speaker.model, speaker.pipeline], ["advisor", "joe", "claude", "advice"]);
  const shown = conversation.map((entry) => (entry.kind === "handoff" ? [entry.from, entry.to, entry.reason, entry.ms] : entry.kind === "said" ? [entry.role, entry.agent] : []));
  assert.deepEqual(shown, [["triage", "advisor", "a loan", 9], ["assistant", "triage"], ["user", ""], ["assistant", "advisor"]]);
});

test("a resumed call knows who speaks, and a gateway that does not say so changes nothing", () => {
  const resumed: ServerMessage = { type: "resumed", sessionId: "s", mode: "local", recovered: true, to: 9 };
  assert.equal(receive(fold([SET_UP]), resumed, 0).speaker.agent, "triage");
  assert.equal(receive(fold([SET_UP]), { ...resumed, agent: "advisor", voice: "joe" }, 0).speaker.agent, "advisor");
  const recap = { transcript: [{ seq: 4, role: "assistant" as const, turn: 1, text: "Hi.", agent: "closer" }], turns: 1 };
  const [line] = receive(INITIAL, { ...resumed, recovered: false, snapshot: recap }, 0).conversation as Said[];
  assert.equal(line?.agent, "closer");
});

test("tokens are those of the last turn that had any, and their sum", () => {
  const turn = (number: number, input: number, output: number): ServerMessage => ({ type: "turn_complete", turn: number, usage: { input_tokens: input, output_tokens: output } });
  const { usage, spent } = fold([turn(1, 800, 40), turn(2, 900, 60), turn(3, 0, 0), { type: "turn_complete", turn: 4 }]);
  assert.deepEqual([usage, spent], [{ input_tokens: 900, output_tokens: 60 }, { input_tokens: 1700, output_tokens: 100, microdollars: 0 }]);
  const priced: ServerMessage = { type: "turn_complete", turn: 1, usage: { input_tokens: 8, output_tokens: 2, microdollars: 54 } };
  assert.equal(fold([priced, priced, turn(2, 1, 1)]).spent.microdollars, 108);
});

test("the stamps of the last spoken turn stay when a turn has none", () => {
  const snapshot = fold([{ type: "turn_complete", turn: 1, latency: { end_of_turn: 200 } }, { type: "turn_complete", turn: 2, latency: {} }]);
  assert.deepEqual([snapshot.turn, snapshot.latency], [2, { end_of_turn: 200 }]);
});

test("what is not a message is a fault that names the field; what is unknown is passed over", () => {
  assert.deepEqual(decode("{"), { fault: "The message is not JSON." });
  assert.deepEqual(decode("[]"), { fault: "The message is not an object." });
  assert.deepEqual(decode('{"type":"transcript","role":"user"}'), { fault: "transcript.text is missing or not of type string." });
  assert.equal(decode('{"type":"from_the_future"}'), null);
  assert.equal(decode('{"type":"constructor"}'), null);
  assert.equal(decode('{"type":"state","state":"dreaming"}'), null);
  assert.deepEqual(decode('{"type":"error","message":"no"}'), { type: "error", code: "INTERNAL", retryable: false, message: "no" });
});

test("a position is resumed with facts or with a transcript that can be read", () => {
  const resumed = { type: "resumed", sessionId: "s", mode: "local", to: 9 };
  assert.deepEqual(decode(JSON.stringify({ ...resumed, recovered: true, from: 3 })), { ...resumed, recovered: true, from: 3 });
  for (const snapshot of [undefined, {}, { transcript: "no", turns: 1 }, { transcript: [{ role: "user" }], turns: 1 }]) {
    assert.deepEqual(decode(JSON.stringify({ ...resumed, recovered: false, snapshot })), { fault: "resumed.snapshot is missing or not a transcript." });
  }
  assert.deepEqual(decode('{"type":"restored","how":"fresh"}'), { type: "restored", how: "fresh", gap_ms: 0, lost: [] });
});

test("a time in a sentence is as exact as a person wants it", () => {
  assert.deepEqual([20, 2_140, 12_400, 89_000, 120_000].map(span), ["0.1 s", "2.1 s", "12 s", "89 s", "2 min"]);
});

test("a close code says what happened and whether to start again", () => {
  assert.deepEqual(describeClose(4009, "", false), { code: 4009, reason: "This page sent too many wrong messages.", retryable: false, ended: false });
  assert.equal(describeClose(1006, "", false).retryable, true);
  assert.equal(describeClose(1000, "", false).ended, true);
});

test("a refused microphone says why and what to do", () => {
  const refused = new Error("no");
  refused.name = "NotAllowedError";
  assert.equal(microphoneError(refused).code, "MIC_DENIED");
  refused.name = "NotFoundError";
  assert.equal(microphoneError(refused).code, "MIC_NOT_FOUND");
  assert.equal(microphoneError("odd").code, "MIC_IN_USE");
});

test("the socket's address comes from the page or from the option", () => {
  assert.equal(socketUrl(undefined, "http://127.0.0.1:8420/sessions"), "ws://127.0.0.1:8420/ws/vox");
  assert.equal(socketUrl("https://voice.example", "http://127.0.0.1/"), "wss://voice.example/ws/vox");
});
