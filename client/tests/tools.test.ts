import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../src/socket/protocol";
import { SETTLE_MS } from "../src/tools";
import { flushPromises, World } from "./world";

test("a page's function is called once: not again for what was answered, and for what was not when the replay is over", async () => {
  const world = new World();
  const calls: unknown[] = [];
  const tools = { ask: (args: Json): Json => (calls.push(args["n"]), { n: args["n"] }) };
  await world.call({ tools });
  const call = (n: number): Json => ({ type: "function_call", name: "ask", args: { n }, server_handled: false, fn_call_id: `c${n}` });
  world.gateway.fact(call(1));
  await flushPromises();
  world.gateway.cut();
  world.gateway.fact(call(2));
  world.gateway.fact({ type: "function_cancelled", name: "ask", fn_call_id: "c2" });
  world.gateway.fact(call(3));
  world.retry();
  await flushPromises();
  assert.deepEqual(calls, [1]);
  world.clock.pass(SETTLE_MS);
  await flushPromises();
  assert.deepEqual(calls, [1, 3]);
  const answered = world.gateway.said.map((data) => (JSON.parse(data as string) as Json)["fn_call_id"]);
  assert.deepEqual(answered, ["c1", "c3"]);
});

test("a page's functions are declared when the call starts, and answered with whatever they make of a call", async () => {
  const world = new World();
  const parameters = { type: "object", properties: { place: { type: "string" } } };
  const tools = {
    title: () => "Prices",
    map: { description: "Show a place.", parameters, timeoutMs: 5_000, run: ({ place }: Json): Json => ({ place }) },
    nothing: () => undefined,
    fails: (): never => {
      throw new Error("no such page");
    },
  };
  const agent = await world.call({ tools });
  const { tools: declared } = world.gateway.newest.messages[0] as { tools: unknown };
  assert.deepEqual(declared, [{ name: "title" }, { description: "Show a place.", parameters, timeoutMs: 5_000, name: "map" }, { name: "nothing" }, { name: "fails" }]);
  for (const name of ["title", "map", "nothing", "fails", "unknown"]) {
    world.gateway.fact({ type: "function_call", name, args: { place: "Rome" }, server_handled: false, fn_call_id: name });
    await flushPromises();
  }
  const calls = agent.getSnapshot().conversation.filter((entry) => entry.kind === "call");
  assert.deepEqual(calls.map(({ name, status }) => `${name} ${status}`), ["title done", "map done", "nothing done", "fails failed", "unknown failed"]);
  const results = world.gateway.said.map((data) => (JSON.parse(data as string) as Json)["result"]);
  assert.deepEqual(results, [
    { result: "Prices" },
    { place: "Rome" },
    {},
    { success: false, error: "The page's function failed: no such page" },
    { success: false, error: "The page's function failed: it has no unknown" },
  ]);
});
