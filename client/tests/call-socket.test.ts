import assert from "node:assert/strict";
import { test } from "node:test";
import type { FromWorker } from "../src/audio/messages";
import { INPUT_FRAME_BYTES, readPrefix, writePrefix } from "../src/socket/frames";
import { ANSWER_MS, CallSocket, MAX_UNSENT, OPEN_MS } from "../src/socket/call-socket";
import { HELD_FRAMES, HELD_MESSAGES, Outbox } from "../src/socket/outbox";
import { Clock } from "./clock";
import { Socket } from "./gateway";

interface Bench {
  line: CallSocket;
  clock: Clock;
  sockets: Socket[];
  told: FromWorker[];
  played: (ArrayBuffer | "cut")[];
  say: (count: number, from?: number) => void;
}

function bench(): Bench {
  const clock = new Clock();
  const sockets: Socket[] = [];
  const told: FromWorker[] = [];
  const played: (ArrayBuffer | "cut")[] = [];
  const connect = (url: string): WebSocket => {
    const socket = new Socket(url, () => undefined);
    sockets.push(socket);
    return socket as unknown as WebSocket;
  };
  const line = new CallSocket({ connect, later: clock.later, tell: (message) => told.push(message), play: (data) => played.push(data) });
  const say = (count: number, from = 0): void => {
    for (let i = 0; i < count; i++) line.frame(frame(from + i));
  };
  return { line, clock, sockets, told, played, say };
}

function frame(sequence: number): ArrayBuffer {
  const buffer = new ArrayBuffer(INPUT_FRAME_BYTES);
  writePrefix(buffer, sequence, 0);
  return buffer;
}

function sent(socket: Socket | undefined): (string | number)[] {
  return (socket?.received ?? []).map((data) => (typeof data === "string" ? data : (readPrefix(data)?.sequence ?? -1)));
}

function connected({ line, sockets }: Bench): Socket {
  line.open("ws://a", "voxbridge.v1", "hello", 0);
  const socket = sockets.at(-1) as Socket;
  socket.accept();
  line.attach();
  line.listen(true);
  return socket;
}

test("the hello goes first; nothing else goes out before the session has answered", () => {
  const b = bench();
  b.line.open("ws://a", "voxbridge.v1", "hello", 0);
  b.line.listen(true);
  b.line.send("early");
  b.say(2);
  b.sockets[0]?.accept();
  assert.deepEqual(sent(b.sockets[0]), ["hello"]);
  b.line.attach();
  b.say(1, 2);
  assert.deepEqual(sent(b.sockets[0]), ["hello", "early", 0, 1, 2]);
});

test("a lost socket cuts the sound at once, and its frames and words wait in the order they were made", () => {
  const b = bench();
  const first = connected(b);
  b.say(2);
  first.lose(1012);
  assert.deepEqual(b.played, ["cut"]);
  assert.deepEqual(b.told.at(-1), { type: "close", code: 1012, reason: "" });
  b.say(1, 2);
  b.line.send("typed");
  b.say(1, 3);
  b.line.open("ws://a", "voxbridge.v1", "resume", 0);
  b.sockets[1]?.accept();
  b.line.attach();
  b.say(1, 4);
  assert.deepEqual(sent(first), ["hello", 0, 1]);
  assert.deepEqual(sent(b.sockets[1]), ["resume", 2, "typed", 3, 4]);
});

test("of a long gap the last 5 s are kept, each frame once", () => {
  const b = bench();
  connected(b).lose();
  b.say(HELD_FRAMES + 40);
  b.line.open("ws://a", "voxbridge.v1", "resume", 0);
  b.sockets[1]?.accept();
  b.line.attach();
  b.clock.pass(2_000);
  assert.equal(b.clock.pending, 0);
  assert.deepEqual(sent(b.sockets[1]), ["resume", ...Array.from({ length: HELD_FRAMES }, (_, i) => i + 40)]);
});

test("what waited goes out at ten times the pace of speech, and what is being said follows it", () => {
  const b = bench();
  connected(b).lose();
  b.say(25);
  b.line.open("ws://a", "voxbridge.v1", "resume", 0);
  b.sockets[1]?.accept();
  b.line.attach();
  assert.equal(sent(b.sockets[1]).length, 11);
  b.say(1, 25);
  b.clock.pass(20);
  assert.equal(sent(b.sockets[1]).length, 21);
  b.clock.pass(20);
  b.say(1, 26);
  assert.deepEqual(sent(b.sockets[1]), ["resume", ...Array.from({ length: 27 }, (_, i) => i)]);
});

test("what is said muted is not kept", () => {
  const b = bench();
  connected(b).lose();
  b.line.listen(false);
  b.say(5);
  b.line.open("ws://a", "voxbridge.v1", "resume", 0);
  b.sockets[1]?.accept();
  b.line.attach();
  assert.deepEqual(sent(b.sockets[1]), ["resume"]);
});

test("messages that wait are bounded, and the newest finds no room", () => {
  const outbox = new Outbox();
  for (let i = 0; i <= HELD_MESSAGES; i++) outbox.message(`${i}`);
  assert.equal(outbox.length, HELD_MESSAGES);
  assert.equal(outbox.shift(), "0");
});

test("a frame that is kept is a copy: its buffer is filled again", () => {
  const outbox = new Outbox();
  const buffer = frame(1);
  outbox.frame(buffer);
  writePrefix(buffer, 2, 0);
  assert.equal(readPrefix(outbox.shift() as ArrayBuffer)?.sequence, 1);
});

test("where the network takes no more, speech waits and goes on in order", () => {
  const b = bench();
  const socket = connected(b);
  socket.bufferedAmount = MAX_UNSENT + 1;
  b.say(3);
  assert.deepEqual(sent(socket), ["hello"]);
  socket.bufferedAmount = 0;
  b.clock.pass(20);
  assert.deepEqual(sent(socket), ["hello", 0, 1, 2]);
  assert.equal(b.clock.pending, 0);
});

test("a socket that does not open within 5 s is lost, and so is one whose session does not answer within 15 s", () => {
  const b = bench();
  b.line.open("ws://a", "voxbridge.v1", "hello", 0);
  b.clock.pass(OPEN_MS);
  assert.deepEqual(b.told.at(-1), { type: "close", code: 1006, reason: "" });
  b.line.open("ws://a", "voxbridge.v1", "hello", 0);
  b.sockets[1]?.accept();
  b.clock.pass(ANSWER_MS - 1);
  assert.equal(b.told.at(-1)?.type, "open");
  b.clock.pass(1);
  assert.equal(b.told.at(-1)?.type, "close");
  assert.equal(b.sockets[1]?.closedWith, 1000);
});

test("a try that is due is made then, and another one in its place unmakes it", () => {
  const b = bench();
  b.line.open("ws://a", "voxbridge.v1", "hello", 3_000);
  b.clock.pass(2_999);
  assert.equal(b.sockets.length, 0);
  b.line.open("ws://a", "voxbridge.v1", "hello", 0);
  assert.equal(b.sockets.length, 1);
  b.clock.pass(1);
  assert.equal(b.sockets.length, 1);
});

test("a socket that was given up is heard no more", () => {
  const b = bench();
  const first = connected(b);
  b.line.open("ws://b", "voxbridge.v1", "resume", 0);
  assert.deepEqual(b.played, ["cut"]);
  const before = b.told.length;
  first.say({ type: "state", state: "listening" });
  first.lose();
  assert.equal(b.told.length, before);
});

test("a gateway of another protocol gets no hello", () => {
  const b = bench();
  b.line.open("ws://a", "voxbridge.v1", "hello", 0);
  b.sockets[0]?.accept("");
  assert.deepEqual(sent(b.sockets[0]), []);
  assert.deepEqual(b.told.at(-1), { type: "open", protocol: "" });
});
