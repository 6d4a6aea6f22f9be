/** The mode of a bridge as the conversation shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "voxbridge/react";
import { modeOf, SWITCH } from "../src/talk/mode";

function switched(mode: string, status: "running" | "done" | "failed" = "done", name = SWITCH): Entry {
  return { kind: "call", key: mode, id: mode, name, args: { mode }, status, result: status === "running" ? null : { mode }, ms: null, startedAt: null, undo: null };
}
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
