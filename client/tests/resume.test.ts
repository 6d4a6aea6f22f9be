import assert from "node:assert/strict";
import { test } from "node:test";
import type { VoiceAgent } from "../src/client";
import { INPUT_FRAME_BYTES, readPrefix, writePrefix } from "../src/socket/frames";
import type { Json } from "../src/socket/protocol";
import type { Said } from "../src/entries";
import { flushPromises, World } from "./world";

function lines(agent: VoiceAgent): string[] {
  return agent.getSnapshot().conversation.filter((entry): entry is Said => entry.kind === "said").map(({ role, text }) => `${role}: ${text}`);
}

function transcript(role: string, text: string, more: Json = {}): Json {
  return { type: "transcript", role, text, final: true, turn: 1, ...more };
}

function speak(world: World, count: number, from = 0): void {
  for (let i = 0; i < count; i++) {
    const frame = new ArrayBuffer(INPUT_FRAME_BYTES);
    writePrefix(frame, from + i, 0);
    world.line?.frame(frame);
  }
}

function heard(world: World): (number | string)[] {
  return world.gateway.said.map((data) => (typeof data === "string" ? String((JSON.parse(data) as Json)["type"]) : (readPrefix(data)?.sequence ?? -1)));
}

test("a lost socket is resumed by itself from the last position, and what was missed is there once and in order", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.fact(transcript("user", "Hello."));
  const last = world.gateway.fact(transcript("assistant", "Hi."));
  world.clock.pass(8_000);
  world.gateway.cut();
  assert.deepEqual(world.played, ["cut"]);
  const { connection, state, interruption } = agent.getSnapshot();
  assert.deepEqual([connection, state, interruption?.reason, interruption?.attempt], ["reconnecting", "reconnecting", "The connection was lost.", 1]);
  world.gateway.fact(transcript("user", "Are you there?"));
  world.clock.pass(2_000);
  world.gateway.answer();
  assert.deepEqual(world.gateway.newest.messages[0], { type: "resume", sessionId: "s1", resumeToken: "t".repeat(43), last_seq: last });
  world.gateway.fact(transcript("assistant", "Yes."));
  assert.deepEqual(lines(agent), ["user: Hello.", "assistant: Hi.", "user: Are you there?", "assistant: Yes."]);
  assert.equal(agent.getSnapshot().connection, "connected");
  assert.equal(agent.getSnapshot().state, "listening");
  assert.equal(agent.getSnapshot().interruption, null);
  assert.equal(agent.getSnapshot().notice?.text, "You were cut off for 2.0 s; nothing was lost.");
});

test("what another gateway tells twice is taken once", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.fact(transcript("user", "One."));
  world.gateway.cut();
  world.retry();
  for (const fact of world.gateway.log.facts) world.gateway.attached?.say(fact);
  world.gateway.fact(transcript("user", "Two."));
  assert.deepEqual(lines(agent), ["user: One.", "user: Two."]);
});

test("a hundred cuts in a conversation lose and repeat nothing", async () => {
  const world = new World();
  const agent = await world.call();
  const seen: number[] = [];
  agent.on("transcript", ({ seq }) => seq !== undefined && seen.push(seq));
  for (let i = 0; i < 100; i++) {
    world.random = (i * 0.37) % 1;
    if (i % 3 !== 0) world.gateway.fact(transcript("user", `Before ${i}.`));
    world.gateway.cut(i % 2 === 0 ? 1006 : 1012);
    for (let missed = 0; missed < i % 5; missed++) world.gateway.fact(transcript("assistant", `Missed ${i}.${missed}.`));
    if (i % 4 === 0) {
      world.gateway.reachable = false;
      world.retry();
      world.gateway.reachable = true;
    }
    world.retry();
  }
  assert.deepEqual(seen, world.gateway.log.facts.filter(({ type }) => type === "transcript").map(({ seq }) => seq));
  assert.equal(agent.getSnapshot().error, null);
});

test("partial text of before the cut does not stay beside what it became", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.attached?.say({ type: "transcript", role: "user", text: "what ti", final: false, turn: 1 });
  world.gateway.attached?.say({ type: "transcript", role: "assistant", text: "Well", final: false, turn: 1, generation: 1 });
  world.gateway.cut();
  assert.equal(lines(agent).length, 2);
  world.gateway.fact(transcript("user", "What time is it?"));
  world.retry();
  assert.deepEqual(lines(agent), ["user: What time is it?"]);
});

function texts(world: World): unknown[] {
  return world.gateway.newest.messages.filter(({ type }) => type === "text").map(({ text }) => text);
}

test("a text that was on its way when the socket broke is sent again, ahead of what was typed since, until the log has it", async () => {
  const world = new World();
  const agent = await world.call();
  await agent.sendText("one");
  const [{ id } = {}] = world.gateway.newest.messages.filter(({ type }) => type === "text");
  assert.equal(typeof id, "string");
  world.gateway.cut();
  world.random = 0.25;
  await agent.sendText("two");
  world.retry();
  assert.deepEqual(texts(world), ["one", "two"]);
  assert.equal(world.gateway.newest.messages.find(({ text }) => text === "one")?.["id"], id, "by this the log knows it");
  world.gateway.fact(transcript("user", "one", { id }));
  world.gateway.cut();
  world.retry();
  assert.deepEqual(texts(world), ["two"]);
  assert.deepEqual(lines(agent), ["user: one", "user: two"]);
});

test("speech and words of the gap are sent after the session has answered, in their order and once", async () => {
  const world = new World();
  const agent = await world.call();
  speak(world, 2);
  world.gateway.cut();
  speak(world, 3, 2);
  await agent.sendText("typed meanwhile");
  speak(world, 1, 5);
  assert.deepEqual(heard(world), [0, 1]);
  world.retry();
  speak(world, 1, 6);
  assert.deepEqual(heard(world), [0, 1, 2, 3, 4, "text", 5, 6]);
  assert.deepEqual(lines(agent), ["user: typed meanwhile"]);
  world.gateway.fact(transcript("user", "typed meanwhile"));
  assert.deepEqual(lines(agent), ["user: typed meanwhile"]);
});

test("of a gap longer than 5 s it is said that only the last 5 s of speech are kept", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.reachable = false;
  world.gateway.cut();
  while (world.clock.now < 9_000) world.retry();
  world.gateway.reachable = true;
  world.retry();
  assert.match(agent.getSnapshot().notice?.text ?? "", /^You were cut off for \d+(\.\d)? s; of what you said meanwhile, the last 5 s are kept\.$/);
});

test("the pause before a try is a share of a limit that doubles, and it is told when the next one is due", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.reachable = false;
  world.gateway.cut();
  const pauses: number[] = [];
  for (let i = 0; i < 7; i++) {
    pauses.push((agent.getSnapshot().interruption?.nextTryAt ?? 0) - world.clock.now);
    world.retry();
  }
  assert.deepEqual(pauses, [125, 250, 250, 250, 250, 250, 250]);
  assert.equal(agent.getSnapshot().interruption?.attempt, 8);
});

test("a try that is under way has no time; it is told as such", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.cut();
  assert.notEqual(agent.getSnapshot().interruption?.nextTryAt, null);
  world.clock.pass(125);
  assert.equal(agent.getSnapshot().interruption?.nextTryAt, null);
});

test("a socket that holds for less than 2 s does not make the pauses short again", async () => {
  const world = new World();
  const agent = await world.call();
  for (let i = 0; i < 4; i++) {
    world.gateway.cut(4008);
    world.retry();
  }
  world.gateway.cut(4008);
  assert.equal((agent.getSnapshot().interruption?.nextTryAt ?? 0) - world.clock.now, 250);
  world.retry();
  world.clock.pass(2_000);
  world.gateway.cut(4008);
  assert.equal((agent.getSnapshot().interruption?.nextTryAt ?? 0) - world.clock.now, 125);
});

test("where the gateway says later, nothing is tried for 2 s, and its own words are the reason", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.cut();
  world.clock.pass(125);
  world.gateway.mute = true;
  world.gateway.newest.accept();
  world.gateway.newest.say({ type: "error", code: "UNAVAILABLE", message: "The event log does not answer. Try again.", retryable: true });
  world.gateway.newest.lose(1013);
  const { interruption, error, state } = agent.getSnapshot();
  assert.equal(state, "reconnecting");
  assert.equal(error, null);
  assert.equal(interruption?.reason, "The event log does not answer. Try again.");
  assert.ok((interruption.nextTryAt ?? 0) - world.clock.now >= 2_000);
});

test("what the log no longer holds comes as a whole in its place, and what was typed meanwhile stays", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.fact(transcript("user", "Old."));
  world.gateway.cut();
  const last = world.gateway.fact(transcript("assistant", "New.", { turn: 2 }));
  world.gateway.log.floor = last;
  await agent.sendText("Still here?");
  world.retry();
  assert.deepEqual(lines(agent), ["user: Old.", "assistant: New.", "user: Still here?"]);
  assert.equal(agent.getSnapshot().turn, 7);
  assert.match(agent.getSnapshot().notice?.text ?? "", /; the conversation was fetched anew, without its beginning\.$/);
  world.gateway.attached?.say(world.gateway.log.facts.at(-1) as Json);
  world.gateway.fact(transcript("assistant", "Yes.", { turn: 3 }));
  assert.deepEqual(lines(agent).slice(-1), ["assistant: Yes."]);
});

test("another window that takes the call is said, and nothing reconnects until the person takes it back", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.fact(transcript("user", "Mine."));
  world.gateway.attached?.say({ type: "error", code: "CONFLICT", message: "Another client has resumed this session.", retryable: false });
  world.gateway.cut(4010);
  assert.equal(agent.getSnapshot().state, "elsewhere");
  assert.equal(agent.getSnapshot().error, null);
  assert.equal(world.tab.items.size, 0);
  world.clock.pass(600_000);
  assert.equal(world.gateway.sockets.length, 1);
  world.gateway.fact(transcript("assistant", "Said there."));
  agent.takeBack();
  await flushPromises();
  world.gateway.answer();
  assert.equal(agent.getSnapshot().connection, "connected");
  assert.deepEqual(lines(agent), ["user: Mine.", "assistant: Said there."]);
  assert.equal(world.tab.items.size, 1);
});

test("a session that is over is said to be over, without an error, and a new call can begin", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.log.ended = true;
  world.gateway.cut();
  world.retry();
  const { state, closed, error } = agent.getSnapshot();
  assert.deepEqual([state, error, closed?.code, closed?.retryable], ["ended", null, 4004, true]);
  assert.match(closed?.reason ?? "", /has ended/);
  assert.equal(world.tab.items.size, 0);
  world.gateway.log.ended = false;
  const again = agent.start();
  await flushPromises();
  world.gateway.answer();
  await again;
  assert.equal(world.gateway.newest.messages[0]?.["type"], "start");
});

test("after the window it gives up, says so, and does nothing more", async () => {
  const world = new World();
  const agent = await world.call({ resumeWindow: 30_000 });
  world.gateway.reachable = false;
  world.gateway.cut();
  while (agent.getSnapshot().connection === "reconnecting") world.retry();
  assert.equal(world.clock.now, 30_000);
  assert.equal(agent.getSnapshot().closed?.reason, "The call could not be taken up again within 30 s.");
  assert.equal(agent.getSnapshot().error?.code, "CONNECTION_LOST");
  assert.equal(agent.getSnapshot().state, "ended");
  const tries = world.gateway.sockets.length;
  world.clock.pass(600_000);
  assert.equal(world.gateway.sockets.length, tries);
  assert.equal(world.clock.pending, 0);
});

for (const code of [1000, 1009, 4009, 4321]) {
  test(`after ${code} nothing is tried again`, async () => {
    const world = new World();
    const agent = await world.call();
    world.gateway.cut(code);
    world.clock.pass(600_000);
    assert.equal(world.gateway.sockets.length, 1);
    assert.equal(agent.getSnapshot().connection, "closed");
    assert.equal(agent.getSnapshot().error === null, code === 1000);
  });
}

for (const code of [1001, 1005, 1006, 1011, 1012, 4008]) {
  test(`after ${code} the call is taken up again at once`, async () => {
    const world = new World();
    const agent = await world.call();
    world.gateway.cut(code);
    world.clock.pass(250);
    assert.equal(world.gateway.sockets.length, 2);
    world.gateway.answer();
    assert.equal(agent.getSnapshot().connection, "connected");
  });
}

test("a call that was never set up is not tried again", async () => {
  const world = new World();
  const agent = world.agent();
  const started = agent.start();
  await flushPromises();
  world.gateway.reachable = false;
  world.gateway.answer();
  await assert.rejects(started, { code: "CONNECTION_FAILED" });
  world.clock.pass(600_000);
  assert.equal(world.gateway.sockets.length, 1);
});

test("the network coming back, or the page being looked at again, is a try at once", async () => {
  for (const network of [true, false]) {
    const world = new World();
    const agent = await world.call();
    world.gateway.reachable = false;
    world.gateway.cut();
    for (let i = 0; i < 5; i++) world.retry();
    world.watcher?.offline();
    assert.equal(agent.getSnapshot().reason, "This device is offline.");
    const tries = world.gateway.sockets.length;
    world.watcher?.back(network);
    assert.equal(world.gateway.sockets.length, tries + 1);
    world.gateway.reachable = true;
    world.gateway.answer();
    assert.equal(agent.getSnapshot().connection, "connected");
  }
});

test("a socket that was open while the network was away is replaced, unless it never left the computer", async () => {
  for (const [page, sockets] of [["https://voice.example/", 2], ["http://127.0.0.1:8420/", 1], ["http://localhost/", 1]] as const) {
    const world = new World();
    world.page = page;
    await world.call();
    world.watcher?.offline();
    world.watcher?.back(true);
    world.clock.pass(250);
    assert.equal(world.gateway.sockets.length, sockets, page);
  }
});

test("a page that is loaded anew goes on with its call and gets the whole of it", async () => {
  const world = new World();
  await world.call({ pushToTalk: true });
  world.gateway.fact(transcript("user", "Before."));
  world.gateway.fact({ type: "function_call", name: "add", args: {}, server_handled: true, fn_call_id: "c" });
  world.gateway.fact({ type: "function_result", name: "add", result: { sum: 3 }, fn_call_id: "c" });
  world.watcher?.leaving();
  const next = new World(world.clock, world.gateway.log, world.tab);
  const agent = next.agent();
  assert.ok(agent.resume());
  assert.equal(agent.getSnapshot().state, "reconnecting");
  assert.equal(agent.getSnapshot().sessionId, "s1");
  await flushPromises();
  next.gateway.answer();
  await flushPromises();
  const snapshot = agent.getSnapshot();
  assert.equal(next.gateway.newest.messages[0]?.["last_seq"], 0);
  assert.deepEqual(lines(agent), ["user: Before."]);
  assert.deepEqual(snapshot.conversation.map((entry) => (entry.kind === "call" ? [entry.status, entry.ms] : null)), [null, ["done", null]]);
  assert.deepEqual([snapshot.connection, snapshot.microphone, snapshot.notice?.text], ["connected", "muted", "You are back in the call; nothing was lost."]);
  next.gateway.cut();
  next.retry();
  assert.ok(next.gateway.newest.messages.some(({ resumeToken }) => resumeToken === "t".repeat(43)));
});

test("a page that is loaded anew without its microphone goes on in text and says why", async () => {
  const world = new World();
  await world.call();
  world.watcher?.leaving();
  const next = new World(world.clock, world.gateway.log, world.tab);
  next.microphone = () => Promise.reject(new Error("no"));
  const agent = next.agent();
  agent.resume();
  await flushPromises();
  next.gateway.answer();
  await flushPromises();
  assert.equal(agent.getSnapshot().connection, "connected");
  assert.equal(agent.getSnapshot().microphone, "off");
  assert.notEqual(agent.getSnapshot().error, null);
});

test("an ended call, another call, and a tab without one have nothing to go on with", async () => {
  const world = new World();
  assert.equal(world.agent().resume(), false);
  const agent = await world.call();
  assert.equal(agent.resume(), false);
  agent.end();
  assert.equal(world.tab.items.size, 0);
  world.gateway.fact({ type: "session_ended", reason: "client_ended" });
  world.gateway.cut(1000);
  assert.deepEqual([agent.getSnapshot().state, agent.getSnapshot().closed?.ended], ["ended", true]);
});

test("an end without a socket is an end at once", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.cut();
  agent.end();
  assert.equal(agent.getSnapshot().closed?.ended, true);
  world.clock.pass(600_000);
  assert.equal(world.gateway.sockets.length, 1);
});

test("without a window, a lost socket is the end of the call and no ticket is kept", async () => {
  const world = new World();
  const agent = await world.call({ resumeWindow: 0 });
  assert.equal(world.tab.items.size, 0);
  world.gateway.cut();
  assert.equal(agent.getSnapshot().error?.code, "CONNECTION_LOST");
});

test("what was chosen is asked for, and what was left out is not", async () => {
  const world = new World();
  await world.call({ mode: "gemini", voice: "Aoede", model: "", agent: "triage", output: "audio", record: false });
  assert.deepEqual(world.gateway.newest.messages[0], { type: "start", mode: "gemini", voice: "Aoede", agent: "triage", output: "audio", record: false, timeZone: "Europe/Lisbon" });
});

test("another worker is a sentence, and what it could not carry on is in it", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.attached?.say({ type: "state", state: "restoring", reason: "the session's worker was lost; waiting for another" });
  assert.equal(agent.getSnapshot().state, "restoring");
  assert.match(agent.getSnapshot().reason, /worker was lost/);
  world.gateway.fact({ type: "restored", how: "reseeded", gap_ms: 3200, lost: [] });
  assert.equal(agent.getSnapshot().notice?.text, "The voice worker was replaced; you lost nothing.");
  world.gateway.fact({ type: "restored", how: "reseeded", gap_ms: 3200, lost: ["2.0 s of what you said."] });
  assert.equal(agent.getSnapshot().notice?.text, "The voice worker was replaced. Lost: 2.0 s of what you said.");
  world.gateway.fact({ type: "restored", how: "fresh", gap_ms: 3200 });
  assert.match(agent.getSnapshot().notice?.text ?? "", /begins afresh/);
  for (const [how, words] of [["handle", /connected again; it goes on where/], ["reseeded", /it was told the conversation again/], ["fresh", /at most a summary/]] as const) {
    world.gateway.fact({ type: "restored", how, cause: "provider", gap_ms: 210, lost: [] });
    assert.match(agent.getSnapshot().notice?.text ?? "", words);
  }
  agent.clearNotice();
  assert.equal(agent.getSnapshot().notice, null);
});

test("a gateway that does not know how to resume ends the call with its reason", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.cut();
  world.clock.pass(250);
  world.gateway.mute = true;
  world.gateway.newest.accept();
  world.gateway.newest.say({ type: "error", code: "INVALID_MESSAGE", message: "The message has no known `type`.", retryable: false });
  assert.equal(agent.getSnapshot().connection, "closed");
  assert.match(agent.getSnapshot().error?.message ?? "", /no known `type`/);
});

test("a reply that lost its sound is said to go on, and one that the person cut off is not", async () => {
  const world = new World();
  const agent = await world.call();
  const cut = (): boolean[] => agent.getSnapshot().conversation.filter((entry): entry is Said => entry.kind === "said").map((entry) => entry.cut);
  world.gateway.fact(transcript("assistant", "One, two,", { generation: 1, interrupted: true, unheard: "three." }));
  world.gateway.fact(transcript("assistant", "Four,", { turn: 2, generation: 2, interrupted: true, unheard: "five." }));
  assert.deepEqual(cut(), [false, false]);
  world.gateway.fact(transcript("assistant", "Four, five.", { turn: 2, generation: 3 }));
  assert.deepEqual(cut(), [false, true, false]);
  assert.ok(world.sound);
  world.sound.playback({ type: "flush", generation: 4, time: 0, cut: true });
  world.gateway.fact(transcript("assistant", "Six,", { turn: 3, generation: 4, interrupted: true, unheard: "seven." }));
  assert.deepEqual(cut(), [false, true, false, true]);
});

test("an access token is said where a call begins, and nowhere else", async () => {
  const world = new World();
  const agent = await world.call({ token: "vxt1.a.b" });
  assert.equal(world.gateway.sockets[0]?.messages[0]?.["token"], "vxt1.a.b");
  world.gateway.cut();
  world.retry();
  assert.deepEqual(Object.keys(world.gateway.newest.messages[0] ?? {}), ["type", "sessionId", "resumeToken", "last_seq"]);
  assert.ok(!JSON.stringify(agent.getSnapshot()).includes("vxt1"));
});
