/** The mode of a bridge as the conversation shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "voxbridge/react";
import { draftOf, steered, SWITCH } from "../src/talk/mode";

function switched(mode: string, status: "running" | "done" | "failed" = "done", name = SWITCH): Entry {
  return { kind: "call", key: mode, id: mode, name, args: { mode }, status, result: status === "running" ? null : { mode }, ms: null, startedAt: null, undo: null };
}
const modeOf = (conversation: Entry[]): string => steered(conversation).mode;
const handoff: Entry = { kind: "handoff", key: "h", from: "officer", to: "second", reason: "", ms: 1 };

test("the newest switch that was done says the mode", () => {
  assert.equal(modeOf([]), "ai");
  assert.equal(modeOf([switched("chat")]), "chat");
  assert.equal(modeOf([switched("chat"), switched("key")]), "key");
  assert.equal(modeOf([switched("key"), switched("ai")]), "ai");
  assert.equal(modeOf([switched("key"), switched("chat", "running")]), "key");
  assert.equal(modeOf([switched("key"), switched("chat", "failed")]), "key");
  assert.equal(modeOf([switched("chat", "done", "set_theme")]), "ai");
  assert.equal(modeOf([switched("everything")]), "ai");
});

test("the next agent begins with orders", () => {
  assert.equal(modeOf([switched("chat"), handoff]), "ai");
  assert.equal(modeOf([switched("chat"), handoff, switched("key")]), "key");
});

function said(text: string, final: boolean, role: "user" | "assistant" = "user"): Entry {
  return { kind: "said", key: text, role, text, final, typed: false, interrupted: false, cut: false, unheard: "", turn: 1, generation: null, seq: null, agent: "" };
}
const off: Entry = { ...(switched("chat") as Extract<Entry, { kind: "call" }>), result: { mode: "chat", auto: false } };

test("words are a draft with AUTO off, once the utterance is over and while nobody took them", () => {
  assert.equal(steered([off]).auto, false);
  assert.equal(steered([off, switched("chat")]).auto, true);
  const drafted = said("write the tests", false);
  assert.equal(draftOf({ conversation: [off, drafted], state: "listening" }), drafted);
  assert.equal(draftOf({ conversation: [off, drafted], state: "user_speaking" }), null);
  assert.equal(draftOf({ conversation: [off, drafted], state: "thinking" }), null);
  assert.equal(draftOf({ conversation: [off, said("write", true)], state: "listening" }), null);
  assert.equal(draftOf({ conversation: [off, said("Hm.", false, "assistant")], state: "listening" }), null);
  assert.equal(draftOf({ conversation: [switched("chat"), drafted], state: "listening" }), null);
});
