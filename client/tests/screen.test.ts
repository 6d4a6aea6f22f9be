import assert from "node:assert/strict";
import { test } from "node:test";
import { REPORTS_A_MINUTE, TEXT_LIMIT } from "../src/call/screen";
import type { Json } from "../src/socket/protocol";
import { World } from "./world";

const reports = (world: World): Json[] => world.gateway.said.map((data) => JSON.parse(data as string) as Json).filter(({ type }) => type === "awareness");

test("a page that does not opt in is not watched, and says nothing", async () => {
  const world = new World();
  const agent = await world.call({});
  assert.equal(world.screen, null);
  agent.setContext("project", "Apollo");
  assert.deepEqual(reports(world), []);
});

test("with consent, pages, errors and what the page states are told while the call is up", async () => {
  const world = new World();
  const agent = await world.call({ awareness: true });
  world.screen?.visited("https://app.test/orders?tab=new&accessToken=x", "Orders");
  world.screen?.visited("https://app.test/orders?tab=new&accessToken=y", "Orders");
  world.screen?.failed("TypeError", "x is undefined");
  agent.setContext("project", "Apollo");
  assert.deepEqual(reports(world).map(({ event_type: kind, page, title, message, key }) => [kind, page, title, message, key]), [
    ["page_visit", "/orders?tab=new", "Orders", undefined, undefined],
    ["error", "/", undefined, "x is undefined", undefined],
    ["context", undefined, undefined, undefined, "project"],
  ]);
  agent.end();
  world.gateway.fact({ type: "session_ended", reason: "client_ended" });
  world.gateway.cut();
  assert.equal(world.screen, null);
});

test("each kind is left out by itself", async () => {
  const world = new World();
  await world.call({ awareness: { errors: false } });
  world.screen?.failed("TypeError", "x is undefined");
  world.screen?.visited("https://app.test/a", "A");
  assert.deepEqual(reports(world).map(({ event_type: kind }) => kind), ["page_visit"]);
});

test("texts are cut, and a page in a loop of errors falls silent for the rest of the minute", async () => {
  const world = new World();
  await world.call({ awareness: true });
  for (let number = 0; number < REPORTS_A_MINUTE + 20; number += 1) world.screen?.failed("Error", "x".repeat(5_000));
  assert.equal(reports(world).length, REPORTS_A_MINUTE);
  assert.equal((reports(world)[0]?.["message"] as string).length, TEXT_LIMIT);
  world.clock.pass(60_001);
  world.screen?.failed("Error", "again");
  assert.equal(reports(world).length, REPORTS_A_MINUTE + 1);
});
