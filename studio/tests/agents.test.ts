import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { graphOf, told } from "../src/agents/graph";
import { named, ofAgent, ofMode, optionsOf, remember, remembered } from "../src/talk/choice";
import { agentName, cost, handedOver, modelName, told as eventTold } from "../src/words";

function stage(phase: string, ...next: string[]): { phase: string; agent: string; next: string[] } {
  return { phase, agent: phase, next };
}

const kept = new Map<string, string>();
Object.assign(globalThis, { localStorage: { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => kept.set(key, value) } });
afterEach(() => kept.clear());

test("each stage stands one column after the latest that leads to it", () => {
  const { places, ways, columns, rows } = graphOf([stage("triage", "advising", "closing"), stage("advising", "closing", "triage"), stage("billing"), stage("closing")]);
  assert.deepEqual(places.map(({ stage: { phase }, column, row }) => [phase, column, row]), [["triage", 0, 0], ["advising", 1, 0], ["billing", 0, 1], ["closing", 2, 0]]);
  assert.deepEqual([columns, rows], [3, 2]);
  assert.deepEqual(ways.map(({ from, to, kind }) => [from.stage.phase, to.stage.phase, kind]), [
    ["triage", "advising", "step"],
    ["triage", "closing", "leap"],
    ["advising", "closing", "step"],
    ["advising", "triage", "return"],
  ]);
});

test("ways to a phase that is not there are left out, and nothing at all is a graph too", () => {
  assert.deepEqual(graphOf([stage("one", "two")]).ways, []);
  assert.deepEqual([graphOf([]).columns, graphOf([]).rows], [1, 1]);
});

test("a pipeline is told in words", () => {
  assert.equal(told([stage("a", "b", "c"), stage("b", "c"), stage("c")]), "Begins with a; a leads to b or c; b leads to c.");
  assert.equal(told([stage("a")]), "Begins with a.");
});

test("a choice is kept, and what is not one counts as none", () => {
  assert.deepEqual(remembered(), ofMode("local"));
  remember({ ...ofMode("gemini"), voice: "Aoede" });
  assert.deepEqual(remembered(), { mode: "gemini", agent: "", voice: "Aoede", model: "" });
  for (const wrong of ["{", "null", '{"mode":"karaoke","voice":7}']) {
    kept.set("voxbridge.choice", wrong);
    assert.deepEqual(remembered(), ofMode("local"));
  }
});

test("an agent counts before everything else, and Claude speaks when it is spoken to", () => {
  assert.deepEqual(optionsOf({ ...ofAgent("front-desk"), voice: "joe" }, true), { mode: "local", agent: "front-desk", voice: "", model: "", output: "" });
  assert.equal(optionsOf(ofMode("claude"), true).output, "audio");
  assert.equal(optionsOf(ofMode("claude"), false).output, "");
  assert.deepEqual([named(ofAgent("front-desk")), named({ ...ofMode("gemini"), voice: "Puck" })], ["Front desk", "Gemini, Puck"]);
});

test("names and events are told in words", () => {
  assert.deepEqual([agentName("front-desk"), modelName("gemini:gemini-3.8-live"), modelName("local"), modelName("mine:a:b")], ["Front desk", "Gemini · gemini-3.8-live", "Local models", "mine · a:b"]);
  assert.equal(handedOver("triage", "advisor", "a loan", true), "Triage handed over to Advisor: a loan.");
  assert.equal(handedOver("", "advisor", "", false), "The agent is handing over to Advisor.");
  assert.equal(eventTold("provider.lost", { provider: "gemini", close_code: 1006 }), "The connection to Gemini was lost (1006).");
  assert.equal(eventTold("handoff.completed", { target: "advisor", ms: 12, history: "log" }), "Advisor goes on after 12 ms. It reads the same history.");
  assert.equal(eventTold("user.said", {}), "");
});

test("what calls cost is told in dollars, where it is known", () => {
  assert.deepEqual([0, 54, 5400, 123_456, 12_345_678].map(cost), ["", ", about $0.000054", ", about $0.0054", ", about $0.12", ", about $12.35"]);
});
