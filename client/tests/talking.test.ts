import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentError, type VoiceAgent, type VoiceAgentOptions } from "../src/client";
import { ANNOUNCED_MS } from "../src/call/talking";
import type { Json } from "../src/socket/protocol";
import { flushPromises, World } from "./world";

const OPTIONS: VoiceAgentOptions = {
  url: "https://voice.example.com",
  apiKey: "pk_test_1",
  instructions: "Be concise.",
  greeting: "Hi!",
  voice: "jess",
  tools: {
    check_order: {
      description: "Look up an order",
      parameters: { order_id: "string" },
      handler: async (args: { order_id: string }, ctx): Promise<unknown> => (await ctx.fetch(`https://api.example.com/${args.order_id}`)).json(),
    },
  },
};

/** What a handler has, as a page's author may write it down. */
interface Ctx {
  secrets: Record<string, string>;
  fetch: typeof fetch;
}

test("a handler may say that its fetch is the browser's: this is compiled", () => {
  const tools: NonNullable<VoiceAgentOptions["tools"]> = {
    order: { handler: async ({ id }: { id: string }, ctx: Ctx): Promise<unknown> => (await ctx.fetch(`https://api.example.com/${id}`)).json() },
  };
  assert.deepEqual(Object.keys(tools), ["order"]);
});

/** A page whose person typed something: the call is up, in text. */
async function typing(world: World): Promise<VoiceAgent> {
  const agent = world.agent(OPTIONS);
  const typed = agent.sendText("hello");
  await flushPromises();
  world.gateway.answer();
  await typed;
  return agent;
}

function said(world: World, type: string): Json[] {
  return world.gateway.said.flatMap((data) => (typeof data === "string" ? [JSON.parse(data) as Json] : [])).filter((message) => message["type"] === type);
}

/** The model calls a function of the page, and says something about it. */
async function asks(world: World, name: string, args: Json = {}): Promise<unknown> {
  world.gateway.fact({ type: "function_call", name, args, server_handled: false, fn_call_id: `c${said(world, "browser_function_result").length}` });
  await flushPromises();
  return said(world, "browser_function_result").at(-1)?.["result"];
}

const REQUESTED = { ok: true, data: { voice_session_requested: true, pending_request: null, message: "Voice session will be activated by client" } };

test("a page with a key configures its agent at the address of the key's sessions, and begins in text", async () => {
  const world = new World();
  await typing(world);
  const socket = world.gateway.newest;
  assert.equal(socket.url, "wss://voice.example.com/session?key=pk_test_1");
  const { tools, ...rest } = socket.messages[0] as Json & { tools: Json[] };
  assert.deepEqual(rest, { type: "configure", instructions: "Be concise.", greeting: "Hi!", voice: "jess", timeZone: "Europe/Lisbon", output: "text", modes: true });
  const [tool = {}] = tools;
  assert.equal(tool["name"], "check_order");
  assert.match(String(tool["handler"]), /^async \(args, ctx\) => .*ctx\.fetch/s);
  assert.equal(said(world, "text")[0]?.["text"], "hello");
});

test("a conversation that was held over HTTP is taken up by its name, in text", async () => {
  const world = new World();
  const { log } = world.gateway;
  log.sid = "0123456789abcdef".repeat(2);
  const agent = world.agent(OPTIONS);
  assert.equal(agent.resume({ conversation: "nothing of the kind" }), false);
  assert.ok(agent.resume({ conversation: `${log.sid}.${log.token}.17` }));
  await flushPromises();
  world.gateway.answer();
  await flushPromises();
  const socket = world.gateway.newest;
  assert.equal(socket.url, "wss://voice.example.com/session?key=pk_test_1");
  assert.deepEqual(socket.messages[0], { type: "resume", sessionId: log.sid, resumeToken: log.token, last_seq: 0 });
  const { connection, microphone } = agent.getSnapshot();
  assert.deepEqual([connection, microphone], ["connected", "off"]);
});

test("to begin anew without a call begins one", async () => {
  const world = new World();
  const agent = world.agent({ ...OPTIONS, microphone: false });
  agent.reset();
  await flushPromises();
  world.gateway.answer();
  await flushPromises();
  assert.equal(agent.getSnapshot().connection, "connected");
  assert.equal(world.gateway.sockets.length, 1);
});

test("what the model asks for is answered as announced, the voice begins when it has said so, and what was asked besides comes first", async () => {
  const world = new World();
  const agent = await typing(world);
  let opened = 0;
  world.microphone = () => Promise.resolve(void (opened += 1));
  const answer = await asks(world, "start_voice_session", { pending_request: "tell me a joke" });
  assert.deepEqual(answer, { ok: true, data: { ...REQUESTED.data, pending_request: "tell me a joke" } });
  assert.equal(opened, 0, "it is still to be announced");
  world.gateway.fact({ type: "turn_complete", turn: 1 });
  await flushPromises();
  assert.equal(opened, 1);
  assert.equal(agent.getSnapshot().microphone, "on");
  const order = world.gateway.said.map((data) => (JSON.parse(data as string) as Json)["type"]);
  assert.deepEqual(order.slice(-2), ["output", "text"]);
  assert.equal(said(world, "output")[0]?.["output"], "audio");
  assert.equal(said(world, "text").at(-1)?.["text"], "tell me a joke");
});

test("a click before the agent has said that it will loses nothing of what was asked besides", async () => {
  const world = new World();
  const agent = await typing(world);
  await asks(world, "start_voice_session", { pending_request: "tell me a joke" });
  await agent.startVoice();
  world.gateway.fact({ type: "turn_complete", turn: 1 });
  world.clock.pass(ANNOUNCED_MS);
  await flushPromises();
  assert.deepEqual(said(world, "text").map(({ text }) => text), ["hello", "tell me a joke"]);
  assert.equal(said(world, "output").length, 1);
});

test("voice that was asked for twice begins once, also without a word about it", async () => {
  const world = new World();
  const agent = await typing(world);
  assert.deepEqual(await asks(world, "start_voice_session"), REQUESTED);
  assert.deepEqual(await asks(world, "start_voice_session"), REQUESTED);
  world.clock.pass(ANNOUNCED_MS);
  await flushPromises();
  assert.equal(agent.getSnapshot().microphone, "on");
  assert.equal(said(world, "output").length, 1);
});

test("without a microphone the conversation stays in text, says why, and answers what was asked", async () => {
  const world = new World();
  const agent = await typing(world);
  world.microphone = () => Promise.reject(AgentError.of("MIC_DENIED"));
  await asks(world, "start_voice_session", { pending_request: "tell me a joke" });
  world.gateway.fact({ type: "turn_complete", turn: 1 });
  await flushPromises();
  assert.equal(said(world, "output").length, 0);
  assert.equal(said(world, "text").at(-1)?.["text"], "tell me a joke");
  await assert.rejects(agent.startVoice(), { code: "MIC_DENIED" });
  assert.equal(agent.getSnapshot().error?.code, "MIC_DENIED");
  assert.deepEqual([agent.getSnapshot().microphone, agent.getSnapshot().connection], ["off", "connected"]);
});

test("a voice that cannot be reached leaves the conversation in text, with the reason, and may be tried again", async () => {
  const world = new World();
  const agent = await typing(world);
  await agent.startVoice();
  world.gateway.fact({ type: "output", output: "audio" });
  world.gateway.fact({ type: "output", output: "text", reason: "The voice is away." });
  await flushPromises();
  assert.deepEqual([agent.getSnapshot().microphone, agent.getSnapshot().connection], ["off", "connected"]);
  assert.deepEqual([agent.getSnapshot().error?.message, agent.getSnapshot().error?.code], ["The voice is away.", "VOICE_AWAY"]);
  world.gateway.fact({ type: "turn_complete", turn: 1 });
  assert.equal(agent.getSnapshot().error?.code, "VOICE_AWAY", "an answer in text does not bring the voice back");
  await agent.startVoice();
  assert.deepEqual([agent.getSnapshot().microphone, agent.getSnapshot().error], ["on", null]);
  world.gateway.fact({ type: "output", output: "text", reason: "The voice is away." });
  await agent.sendText("then we write");
  assert.equal(agent.getSnapshot().error, null, "the person has gone on in text");
});

test("each mode refuses what only the other one has, for good", async () => {
  const world = new World();
  const agent = await typing(world);
  const restricted = (message: string): Json => ({ ok: false, success: false, error: { type: "MODE_RESTRICTED", message, retryable: false } });
  assert.deepEqual(await asks(world, "end_voice_session"), restricted("end_voice_session only available in voice mode"));
  await agent.startVoice();
  assert.deepEqual(await asks(world, "start_voice_session"), restricted("start_voice_session only available in text mode"));
});

test("a request of more than 200 characters is refused", async () => {
  const world = new World();
  await typing(world);
  const answer = (await asks(world, "start_voice_session", { pending_request: "x".repeat(201) })) as { ok: boolean; error: Json };
  assert.deepEqual([answer.ok, answer.error["type"]], [false, "INVALID_ARGUMENT"]);
  assert.match(String(answer.error["message"]), /200 characters/);
});

test("the voice ends by word, and text goes on in the same call", async () => {
  const world = new World();
  const agent = await typing(world);
  await agent.startVoice();
  const answer = (await asks(world, "end_voice_session")) as { ok: boolean };
  assert.equal(answer.ok, true);
  world.gateway.fact({ type: "turn_complete", turn: 2 });
  assert.equal(agent.getSnapshot().microphone, "off");
  assert.equal(said(world, "output").at(-1)?.["output"], "text");
  await agent.sendText("and now?");
  assert.equal(said(world, "text").at(-1)?.["text"], "and now?");
  assert.equal(world.gateway.sockets.length, 1);
});

test("a conversation that is begun anew is empty", async () => {
  const world = new World();
  const agent = await typing(world);
  agent.reset();
  assert.equal(said(world, "reset").length, 1);
  world.gateway.fact({ type: "reset" });
  assert.deepEqual(agent.getSnapshot().conversation, []);
});
