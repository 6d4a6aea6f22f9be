import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEvent } from "../src/sessions/api";
import { gaps } from "../src/sessions/gaps";
import { layout } from "../src/sessions/layout";

let seq = 0;
function event(ms: number, writer: string, type: string, data: Record<string, unknown> = {}): LogEvent {
  seq += 1;
  return { seq, id: `e${seq}`, type, v: 1, writer, visibility: "i", ts: 1_700_000_000_000_000 + ms * 1000, cause: null, data };
}

function found(...events: LogEvent[]): ReturnType<typeof gaps> {
  return gaps(events, layout(events));
}

const BEGIN = [
  event(0, "gateway", "session.requested"),
  event(10, "voice", "session.owned", { worker: "voice-a", term: 1 }),
  event(20, "gateway", "client.connected", { gateway: "gateway-a", connection: "gateway-a-1", resumed: false, last_seq: 0 }),
];

test("a worker that died leaves a gap that ends where the next one took over, and what was lost is named", () => {
  const [gap] = found(
    ...BEGIN,
    event(9000, "voice", "session.owned", { worker: "voice-b", term: 2 }),
    event(9000, "voice", "session.restored", { worker: "voice-b", term: 2, how: "reseeded", gap_ms: 3200, lost: ["0.4 s of the microphone's audio were lost."] }),
  );
  assert.deepEqual([gap?.kind, gap?.from, gap?.to, gap?.title], ["worker", 5800, 9000, "Worker lost"]);
  assert.match(gap?.why.join(" ") ?? "", /voice-a died or hung.*voice-b took the session over as term 2 after 3.20 s.*0\.4 s of the microphone/s);
});

test("a worker that was stopped says so, and nothing lost is said as well", () => {
  const [gap] = found(
    ...BEGIN,
    event(8000, "voice", "session.released", { worker: "voice-a", term: 1, reason: "drain" }),
    event(8300, "voice", "session.restored", { worker: "voice-b", term: 2, how: "reseeded", gap_ms: 300, lost: [] }),
  );
  assert.deepEqual([gap?.from, gap?.to, gap?.title], [8000, 8300, "Worker stopped"]);
  assert.match(gap?.why.join(" ") ?? "", /was stopped \(drain\).*300 ms later.*Nothing was lost\./s);
});

test("a client that was cut off has a gap from its last socket to its next", () => {
  const [gap] = found(
    ...BEGIN,
    event(4000, "gateway", "client.disconnected", { gateway: "gateway-a", connection: "gateway-a-1", reason: "the socket closed with 1006", last_seq: 9 }),
    event(6500, "gateway", "client.connected", { gateway: "gateway-b", connection: "gateway-b-1", resumed: true, last_seq: 9 }),
  );
  assert.deepEqual([gap?.kind, gap?.from, gap?.to], ["client", 4000, 6500]);
  assert.match(gap?.why.join(" ") ?? "", /closed with 1006\. The client was back on gateway-b after 2\.50 s.*position 9/s);
});

test("a gateway that died without a word is told by the client's return", () => {
  const [gap] = found(
    ...BEGIN,
    event(3000, "gateway", "text.received", { text: "hi" }),
    event(6000, "gateway", "client.connected", { gateway: "gateway-b", connection: "gateway-b-1", resumed: true, last_seq: 3 }),
  );
  assert.deepEqual([gap?.title, gap?.from, gap?.to], ["Gateway lost", 3000, 6000]);
});

test("a client that never came back is gone until the end", () => {
  const [gap] = found(
    ...BEGIN,
    event(4000, "gateway", "client.disconnected", { reason: "", last_seq: 9 }),
    event(14_000, "voice", "session.ended", { reason: "client_gone" }),
  );
  assert.deepEqual([gap?.from, gap?.to], [4000, 14_000]);
  assert.match(gap?.why.join(" ") ?? "", /not known why.*ended \(client gone\)/s);
});

test("a client that ended its session and hung up leaves no gap", () => {
  assert.deepEqual(found(...BEGIN, event(5000, "voice", "session.ended", { reason: "client" }), event(5010, "gateway", "client.disconnected", { reason: "the socket closed with 1000" })), []);
});

test("a model that failed is named with what it said", () => {
  const [gap] = found(...BEGIN, event(4000, "voice", "provider.failed", { part: "llm", turn: 1, error: { code: "UNAVAILABLE", message: "answers 503", retryable: true } }));
  assert.deepEqual([gap?.kind, gap?.title, gap?.why[0]], ["model", "The language model failed", "Answers 503."]);
});

test("a model that was asked again is a gap of its own kind of end", () => {
  const failed = (part: string): LogEvent => event(4000, "voice", "provider.failed", { part, turn: 1, handled: true, error: { code: "PROVIDER_UNAVAILABLE", message: "answers 503", retryable: true } });
  assert.match(found(...BEGIN, failed("stt"))[0]?.why[1] ?? "", /asked again/);
  assert.match(found(...BEGIN, failed("turn"))[0]?.why[1] ?? "", /Only the silence/);
});

const LOST = { provider: "gemini", model: "m", close_code: 1006, error: { message: "The socket was closed" } };

test("a model whose connection was lost leaves a gap until it is there again, however often it was tried, and no worker is blamed", () => {
  const all = found(
    ...BEGIN,
    event(5000, "voice", "provider.lost", LOST),
    event(5200, "voice", "provider.lost", LOST),
    event(5600, "voice", "provider.connected", { provider: "gemini", resumed_by: "seed" }),
    event(5600, "voice", "session.restored", { worker: "", how: "reseeded", gap_ms: 600, lost: [] }),
  );
  const [gap] = all;
  assert.equal(all.length, 1);
  assert.deepEqual([gap?.kind, gap?.from, gap?.to, gap?.title], ["model", 5000, 5600, "Connection to Gemini lost"]);
  assert.deepEqual(gap?.why, ["The socket was closed.", "It was there again after 600 ms. It was told the conversation again from the log.", "Nothing was lost."]);
});

test("a model that was given up and one that is still away have gaps too", () => {
  const [given] = found(...BEGIN, event(5000, "voice", "provider.lost", LOST), event(9000, "voice", "provider.failed", { part: "llm", error: LOST.error }));
  assert.deepEqual([given?.from, given?.to, given?.why[1]], [5000, 9000, "It could not be recovered, and the agent said so."]);
  const [away] = found(...BEGIN, event(5000, "voice", "provider.lost", LOST), event(6000, "gateway", "playback.reported"));
  assert.deepEqual([away?.from, away?.to, away?.why], [5000, 6000, ["It is being reopened."]]);
});
