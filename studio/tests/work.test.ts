import assert from "node:assert/strict";
import { test } from "node:test";
import type { Approval, Call, Entry, Task } from "voxbridge/react";
import { ARGUMENTS_LIMIT, became, facts, isLate, left, progress, shown } from "../src/talk/work";
import { step } from "../src/words";

function call(id: string, more: Partial<Call> = {}): Call {
  return { kind: "call", key: id, id, name: "delete_macro", args: { name: "lunch" }, status: "done", result: {}, ms: null, startedAt: null, undo: null, ...more };
}

function approval(more: Partial<Approval> = {}): Approval {
  return { kind: "approval", key: "a", id: "approval-c1", callId: "c1", name: "delete_macro", args: {}, effect: "destructive", question: "", expiresAt: 0, scopes: [], answer: null, outcome: null, by: "", ...more };
}

function task(more: Partial<Task> = {}): Task {
  return { kind: "task", key: "t", id: "task-c1", name: "delete_macro", status: "running", done: null, message: "", run: null, cancelling: false, result: null, startedAt: null, undo: null, ms: null, ...more };
}

const kinds = (entries: readonly Entry[], asking: readonly Approval[] = []): string[] => shown(entries, asking).map(({ kind }) => kind);

test("a piece of work has one card: its request, then its task, and else its call", () => {
  const asked = call("c1", { result: { status: "needs_approval", task_id: "task-c1" } });
  const open = approval();
  assert.deepEqual(kinds([asked, open], [open]), []);
  assert.deepEqual(kinds([asked, approval({ outcome: "denied" })]), ["approval"]);
  assert.deepEqual(kinds([asked, approval({ outcome: "approved" }), task()]), ["approval", "task"]);
  assert.deepEqual(kinds([call("c2", { result: { task_id: "task-c2", status: "started" } })]), ["call"]);
  assert.deepEqual(kinds([call("c3", { id: null, result: null })]), ["call"]);
  const begun = shown([call("c1", { result: { task_id: "task-c1", status: "started" } }), task()], []);
  assert.deepEqual(begun.map((entry) => (entry.kind === "task" ? entry.args : entry.kind)), [{ name: "lunch" }]);
});

test("a request that is over says what counted, and whether a click came too late", () => {
  const yes = { answer: "approved", scope: "once" } as const;
  const told: [Partial<Approval>, string, boolean][] = [
    [{}, "", false],
    [{ answer: yes }, "Your yes is on its way.", false],
    [{ answer: yes, outcome: "approved", by: "click" }, "You said yes.", false],
    [{ answer: { ...yes, scope: "function" }, outcome: "approved", by: "click" }, "You said yes, for good.", false],
    [{ outcome: "denied", by: "voice" }, "You said no aloud.", false],
    [{ answer: yes, outcome: "denied", by: "voice" }, "You said no aloud, before your click.", true],
    [{ answer: yes, outcome: "denied", by: "click" }, "It was answered with no elsewhere, before your click.", true],
    [{ outcome: "approved", by: "click" }, "It was answered with yes.", false],
    [{ answer: yes, outcome: "lapsed" }, "Nobody answered in time, before your click, so it was not done.", true],
    [{ outcome: "withdrawn" }, "The question is closed, and nothing was done.", false],
  ];
  for (const [more, words, late] of told) assert.deepEqual([became(approval(more)), isLate(approval(more))], [words, late]);
});

test("the time that is left is told where the clocks agree", () => {
  assert.equal(left(103_000, 0), "1:43 left");
  assert.equal(left(100, 0), "0:01 left");
  assert.equal(left(0, 1), "");
  assert.equal(left(600_000, 0), "");
});

test("a task says how far it is, and how it ended", () => {
  assert.deepEqual([task(), task({ done: 0.426 }), task({ done: 0.5, cancelling: true }), task({ status: "interrupted" })].map(progress), ["running", "43 %", "stopping", "not known"]);
});

test("arguments are cut for the eye, and a few are shown", () => {
  const many = Object.fromEntries(Array.from({ length: ARGUMENTS_LIMIT + 3 }, (_, i) => [`part_${i}`, i]));
  assert.equal(facts(many).length, ARGUMENTS_LIMIT);
  assert.deepEqual(facts({ long_text: "x".repeat(400), deep: { a: [1] } }), [["Long text", `${"x".repeat(300)}…`], ["Deep", '{"a":[1]}']]);
});

test("the function that runs is named, with its number since the person spoke last", () => {
  const said = (role: "user" | "assistant", text: string): Entry => ({ kind: "said", key: text, role, text, final: true }) as Entry;
  const talk = [said("user", "What time is it?"), call("c0"), said("assistant", "Noon."), said("user", "List them, then read the first.")];
  assert.equal(step(talk), "");
  assert.equal(step([...talk, call("c1", { name: "list_terminals", status: "running" })]), "List terminals.");
  const second = [...talk, call("c1", { name: "list_terminals" }), call("c2", { name: "read_terminal", status: "running" })];
  assert.equal(step(second), "Step 2: Read terminal.");
  assert.equal(step([...talk, call("c1", { name: "list_terminals" })]), "");
});
