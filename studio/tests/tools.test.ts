import assert from "node:assert/strict";
import { test } from "node:test";
import type { Agent } from "../src/agents/api";
import { agentOn, meant } from "../src/page/models";
import type { FunctionCard } from "../src/tools/api";
import { categories } from "../src/tools/catalogue";

function card(name: string, category: string, change: Partial<FunctionCard> = {}): FunctionCard {
  return { name, category, description: `Do ${name}.`, parameters: {}, kind: "server", timeout_s: 5, effect: "read", approval: "never", listed: true, ...change };
}

function agent(name: string, models: Record<string, string>, missing: string[] = []): Agent {
  return { name, role: "", description: "", scope: "", voice: "", language: "", kind: "cascade", models, tools: null, handoffs: [], missing };
}

test("functions are listed by category and found by all words of the query", () => {
  const all = [card("set_timer", "everyday"), card("delete_macro", "macros", { effect: "destructive" }), card("calculate", "everyday"), card("loose", "")];
  const names = (query: string): [string, string[]][] => categories(all, query).map(({ name, functions }) => [name, functions.map((one) => one.name)]);
  assert.deepEqual(names(""), [["other", ["loose"]], ["everyday", ["calculate", "set_timer"]], ["macros", ["delete_macro"]]]);
  assert.deepEqual(names("timer SET"), [["everyday", ["set_timer"]]]);
  assert.deepEqual(names("destructive"), [["macros", ["delete_macro"]]]);
  assert.deepEqual(names("timer macro"), []);
});

test("a model is meant by its provider, its name or its own name", () => {
  const of = (words: string): [string, string] => [meant(words).mode, meant(words).model];
  assert.deepEqual(of("the Google one"), ["gemini", ""]);
  assert.deepEqual(of("Open AI"), ["openai", ""]);
  assert.deepEqual(of("claude"), ["claude", ""]);
  assert.deepEqual(of("Anthropic"), ["claude", ""]);
  assert.deepEqual(of("the local models on this machine"), ["local", ""]);
  assert.deepEqual(of("gemini-9.9-flash"), ["gemini", "gemini-9.9-flash"]);
  assert.deepEqual(of("gemini-3.8-live"), ["gemini", ""]);
  assert.throws(() => meant("the blue one"), /no model "the blue one"; there is Local models, Gemini/);
  assert.throws(() => meant(`gemini-${"9".repeat(64)}x y`.slice(7)), /no model/);
});

test("an agent of the team takes over where it is on that model", () => {
  const team = [agent("triage", { realtime: "gemini:gemini-3.8-live" }), agent("advisor", { stt: "local", llm: "anthropic:claude-sonnet-5", tts: "local" }), agent("closer", { stt: "local", llm: "local", tts: "local" }), agent("broken", { realtime: "openai" }, ["openai"])];
  const on = (words: string, present = "triage"): string | undefined => agentOn(meant(words), team, present)?.name;
  assert.deepEqual([on("claude"), on("gemini"), on("local"), on("openai"), on("claude-opus-5"), on("claude-sonnet-5")], ["advisor", "triage", "closer", undefined, undefined, "advisor"]);
  assert.equal(agentOn(meant("local"), [...team, agent("other", { llm: "local" })], "other")?.name, "other");
});
