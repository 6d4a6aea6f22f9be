import assert from "node:assert/strict";
import { test } from "node:test";
import { about, byFunction, does, input, isOver, placed, pretty, times, why } from "../src/tools/work";
import { type Attempt, runOf, type TaskCard, taskPath, type Trace } from "../src/tools/work-api";

const RUN: Trace = { id: "c1", name: "lunch", kind: "macro", state: "running", steps: 2 };

function attempt(more: Partial<Attempt> = {}): Attempt {
  return { step: "a", attempt: 1, action: "call", target: "current_time", state: "completed", started_at_ms: 1_000, ...more };
}

test("a run says what it waits for, and where and why it failed", () => {
  const error = { code: "INTERNAL", message: "It broke." };
  const told: [Partial<Trace>, string][] = [
    [{}, ""],
    [{ state: "queued" }, "It waits for an earlier run."],
    [{ state: "waiting", waits_for: "approval" }, "It waits for your approval."],
    [{ state: "waiting", waits_for: "ask", question: "For whom?" }, "For whom?"],
    [{ state: "failed", error }, "It failed: It broke."],
    [{ state: "failed", error, attempts: [attempt(), attempt({ step: "b", state: "interrupted" })] }, "It failed at b: It broke."],
    [{ state: "cancelled", reason: "the user said so" }, "It was cancelled: the user said so."],
  ];
  for (const [more, words] of told) assert.equal(why({ ...RUN, ...more }), words);
  assert.deepEqual((["queued", "waiting", "running", "completed", "failed", "cancelled"] as const).map(isOver), [false, false, false, true, true, true]);
});

test("a step says what it does, when it began and for how long it ran", () => {
  assert.equal(does(attempt()), "Current time");
  assert.equal(does(attempt({ action: "say", target: "" })), "says a text");
  assert.equal(does(attempt({ action: "run", target: "other" })), "runs other");
  assert.equal(times(attempt({ started_at_ms: 2_500, ended_at_ms: 2_540 }), 1_000), "at 1.50 s, for 40 ms");
  assert.equal(times(attempt({ started_at_ms: 900 }), 1_000), "at 0 ms");
});

test("a task says what it is about, and when it is due", () => {
  assert.equal(about({ label: "tea", due_at_ms: 61_000 }, 1_000), "tea · due in 1 m 00 s");
  assert.equal(about({ message: "step 2", due_at_ms: 5 }, 10), "step 2 · due now");
});

test("tasks of other calls stand apart from those outside calls, and those of this call are left to its own cards", () => {
  const tasks = [["a"], ["b", "s1"], ["c", "s2"], ["d", "s1"]].map(([id = "", session]): TaskCard => ({ id, function: "work", state: "running", started_at_ms: 1, ...(session !== undefined && { session }) }));
  const ids = (found: TaskCard[]): string[] => found.map(({ id }) => id);
  const during = placed(tasks, "s1");
  assert.deepEqual([ids(during.outside), ids(during.others)], [["a"], ["c"]]);
  const none = placed(tasks, null);
  assert.deepEqual([ids(none.outside), ids(none.others)], [["a"], ["b", "c", "d"]]);
});

test("a task of a call is cancelled in its session", () => {
  assert.equal(taskPath({ id: "task-c1" }), "/api/vox/tasks/task-c1");
  assert.equal(taskPath({ id: "task-c1", session: "s1" }), "/api/vox/tasks/task-c1?session=s1");
});

test("JSON that was cut is shown as it is", () => {
  assert.equal(pretty('{"a":1}'), '{\n  "a": 1\n}');
  assert.equal(pretty('{"a":[1,2'), '{"a":[1,2');
});

test("an input of a macro is a number or yes/no where it is one", () => {
  assert.deepEqual(["3", " 2.5 ", "true", "false", "Ada", "", "0x"].map(input), [3, 2.5, true, false, "Ada", "", "0x"]);
});

test("standing approvals are told by function", () => {
  assert.deepEqual(byFunction([{ function: "a", arguments: { x: 1 } }, { function: "b" }, { function: "a" }]), [["a", [{ x: 1 }, null]], ["b", [null]]]);
});

test("a task of a run leads to it", () => {
  assert.equal(runOf("task-r-1.2"), "/tools/runs/r-1.2");
});
