import assert from "node:assert/strict";
import { test } from "node:test";
import { describeClose } from "../src/errors";
import type { Approval, Entry, Task } from "../src/entries";
import type { Json, ServerMessage } from "../src/socket/protocol";
import { decode } from "../src/socket/protocol";
import { disconnected, INITIAL, receive, type Snapshot } from "../src/state";
import { openApprovals, openTasks } from "../src/work";
import { flushPromises, World } from "./world";

const ASKED: Json = {
  type: "approval_requested", approval_id: "approval-c1", fn_call_id: "c1", name: "delete_macro", args: { name: "lunch" }, effect: "destructive", question: "Shall I?", expires_ts: 90_000_000,
};
const STARTED: Json = { type: "async_task_started", task_id: "task-c1", function: "run_macro" };

function fold(messages: Json[], from: Snapshot = INITIAL): Snapshot {
  return messages.reduce((snapshot, message) => receive(snapshot, message as ServerMessage, 0), from);
}

function only<Kind extends Entry["kind"]>(snapshot: Snapshot, kind: Kind): Extract<Entry, { kind: Kind }> {
  const [found, ...more] = snapshot.conversation.filter((entry): entry is Extract<Entry, { kind: Kind }> => entry.kind === kind);
  assert.ok(found !== undefined && more.length === 0);
  return found;
}

function ended(outcome: Approval["outcome"], by: Approval["by"] = "click"): Json {
  return { type: "approval_ended", approval_id: "approval-c1", name: "delete_macro", outcome, by };
}

function completed(result: Json): Json {
  return { type: "async_task_complete", task_id: "task-c1", function: "run_macro", result };
}

test("a request for approval is open until the server says what counts", () => {
  const asked = fold([ASKED]);
  assert.deepEqual(openApprovals(asked).map(({ id, name, args, effect, expiresAt }) => [id, name, args, effect, expiresAt]), [["approval-c1", "delete_macro", { name: "lunch" }, "destructive", 90_000]]);
  const over = fold([ended("denied", "voice")], asked);
  assert.deepEqual(openApprovals(over), []);
  assert.deepEqual([only(over, "approval").outcome, only(over, "approval").by], ["denied", "voice"]);
  assert.equal(fold([ended("approved")]), INITIAL);
});

test("a task is told with its progress, within its bounds, and how it ended", () => {
  const progress = (done: number, message?: string): Json => ({ type: "task_progress", task_id: "task-c1", function: "run_macro", done, message });
  assert.deepEqual([only(fold([STARTED]), "task").done, openTasks(fold([STARTED])).length], [null, 1]);
  const half = only(fold([STARTED, progress(0.5, "step 2")]), "task");
  assert.deepEqual([half.done, half.message], [0.5, "step 2"]);
  assert.equal(only(fold([STARTED, progress(7)]), "task").done, 1);
  const ends: [Json, Task["status"]][] = [
    [{ success: true }, "done"],
    [{ success: false, error: "It broke.", code: "INTERNAL" }, "failed"],
    [{ success: false, error: "Cancelled.", code: "CANCELLED" }, "cancelled"],
    [{ success: false, error: "Not known.", code: "INTERRUPTED" }, "interrupted"],
  ];
  for (const [result, status] of ends) assert.equal(only(fold([STARTED, completed(result)]), "task").status, status);
});

test("a page answers once, and only what is open", async () => {
  const world = new World();
  const agent = await world.call();
  assert.equal(agent.answerApproval("approval-c1", true), false);
  world.gateway.fact(ASKED);
  assert.equal(agent.answerApproval("approval-c1", true, "function"), true);
  assert.equal(agent.answerApproval("approval-c1", false), false);
  assert.deepEqual(world.gateway.said.map((data) => JSON.parse(data as string) as Json), [{ type: "approval_answer", approval_id: "approval-c1", answer: "approved", scope: "function" }]);
  world.gateway.fact(ended("denied", "voice"));
  const { answer, outcome, by } = only(agent.getSnapshot(), "approval");
  assert.deepEqual([answer?.answer, outcome, by], ["approved", "denied", "voice"]);
  assert.equal(agent.answerApproval("approval-c1", true), false);
});

test("a task is asked to end as long as it runs", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.fact(STARTED);
  assert.equal(agent.cancelTask("task-c1"), true);
  assert.equal(only(agent.getSnapshot(), "task").cancelling, true);
  assert.deepEqual(world.gateway.said.map((data) => JSON.parse(data as string) as Json), [{ type: "cancel_task", task_id: "task-c1" }]);
  world.gateway.fact(completed({ success: false, error: "Cancelled.", code: "CANCELLED" }));
  assert.equal(agent.cancelTask("task-c1"), false);
});

test("what a lost socket may have swallowed is said again on the next one, and what is over is not", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.fact(ASKED);
  world.gateway.fact(STARTED);
  agent.answerApproval("approval-c1", false);
  agent.cancelTask("task-c1");
  world.gateway.said.length = 0;
  world.gateway.cut();
  world.retry();
  const said = (): unknown[] => world.gateway.said.map((data) => (JSON.parse(data as string) as Json)["type"]);
  assert.deepEqual(said(), ["approval_answer", "cancel_task"]);
  world.gateway.fact(ended("denied"));
  world.gateway.fact(completed({ success: true }));
  world.gateway.said.length = 0;
  world.gateway.cut();
  world.retry();
  assert.deepEqual(said(), []);
});

const WAITING: Json = { type: "run_waiting", run_id: "c1", name: "lunch", reason: "ask", step: "who", question: "For whom?" };

function step(name: string, state: string): Json {
  return { type: "run_step", run_id: "c1", step: name, attempt: 1, state };
}

test("a run says how far it is by its own steps, and what it asks", () => {
  const begun: Json = { type: "run_started", run_id: "c1", name: "lunch", kind: "macro", steps: 4, inputs: {} };
  const at = (...messages: Json[]): (number | string | null | undefined)[] => {
    const { done, message, run } = only(fold([STARTED, begun, ...messages]), "task");
    return [run?.name, done, message];
  };
  assert.deepEqual(at(), ["lunch", null, ""]);
  assert.deepEqual(at(step("one", "started")), ["lunch", 0, "one"]);
  assert.deepEqual(at(step("one", "started"), step("one", "failed"), step("one", "started"), step("one.inner", "completed")), ["lunch", 0, "one"]);
  assert.deepEqual(at(step("one", "completed"), step("two", "skipped"), step("three", "started")), ["lunch", 0.5, "three"]);
  assert.deepEqual(only(fold([STARTED, begun, { ...WAITING, reason: "step", question: "Step 1 of 2: note. Shall I?" }]), "task").run?.question, { reason: "step", step: "who", text: "Step 1 of 2: note. Shall I?", answer: null });
  assert.deepEqual(at({ type: "run_waiting", run_id: "c1", name: "lunch", reason: "queued" }), ["lunch", null, "waits for an earlier run"]);
  assert.deepEqual(only(fold([STARTED, begun, WAITING]), "task").run?.question, { reason: "ask", step: "who", text: "For whom?", answer: null });
  assert.equal(only(fold([STARTED, begun, WAITING, step("who", "completed")]), "task").run?.question, null);
  assert.equal(fold([begun]), INITIAL);
});

test("the question of a run is answered once, and again on the next socket", async () => {
  const world = new World();
  const agent = await world.call();
  world.gateway.fact(STARTED);
  assert.equal(agent.answerRun("c1", "Ada"), false);
  world.gateway.fact(WAITING);
  assert.equal(agent.answerRun("c1", "Ada"), true);
  assert.equal(agent.answerRun("c1", "Bob"), false);
  world.gateway.cut();
  world.retry();
  const answer = { type: "run_answer", run_id: "c1", text: "Ada", step: "who" };
  assert.deepEqual(world.gateway.said.map((data) => JSON.parse(data as string) as Json), [answer, answer]);
  world.gateway.fact(completed({ success: true }));
  assert.equal(agent.answerRun("c1", "Ada"), false);
});

test("after a reload what is open and what runs is there again", async () => {
  const first = new World();
  const agent = await first.call();
  first.gateway.fact(ASKED);
  first.gateway.fact(STARTED);
  first.gateway.fact({ type: "task_progress", task_id: "task-c1", function: "run_macro", done: 0.25, message: "step 1" });
  first.watcher?.leaving();
  assert.equal(openApprovals(agent.getSnapshot()).length, 1);
  const world = new World(first.clock, first.gateway.log, first.tab);
  world.reloaded = true;
  const next = world.agent();
  assert.equal(next.resume(), true);
  await flushPromises();
  world.gateway.answer();
  await flushPromises();
  assert.deepEqual(openApprovals(next.getSnapshot()).map(({ id }) => id), ["approval-c1"]);
  assert.deepEqual(openTasks(next.getSnapshot()).map(({ id, done, message }) => [id, done, message]), [["task-c1", 0.25, "step 1"]]);
  assert.equal(next.answerApproval("approval-c1", true), true);
});

test("a call that is over leaves nothing to decide, and one that went to another window may be taken back", () => {
  const open = fold([{ type: "setup_complete", sessionId: "s", mode: "local", resumed: false }, ASKED, STARTED]);
  const over = disconnected(open, describeClose(1000, "", true), null);
  assert.deepEqual([only(over, "approval").outcome, only(over, "task").status], ["withdrawn", "left"]);
  const elsewhere = disconnected(open, describeClose(4010, "", false), null, "elsewhere");
  assert.deepEqual([only(elsewhere, "approval").outcome, only(elsewhere, "task").status], [null, "running"]);
});

test("a request for approval without what to ask is a fault of the gateway", () => {
  const fault = decode(JSON.stringify({ ...ASKED, question: undefined }));
  assert.ok(fault !== null && "fault" in fault && fault.fault.includes("approval_requested.question"));
});

test("a request says whether a yes can stand", () => {
  assert.deepEqual(only(fold([ASKED]), "approval").scopes, ["arguments", "function"]);
  assert.deepEqual(only(fold([{ ...ASKED, scopes: [] }]), "approval").scopes, []);
});

test("a call that can be taken back says so until it was, by whatever call", () => {
  const call = (name: string, id: string): Json => ({ type: "function_call", name, args: {}, server_handled: true, fn_call_id: id });
  const result = (name: string, id: string, told: Json, more: Json = {}): Json => ({ type: "function_result", name, fn_call_id: id, result: told, ...more });
  const undo = (snapshot: Snapshot): unknown[] => snapshot.conversation.map((entry) => (entry.kind === "call" || entry.kind === "task" ? entry.undo : ""));
  const done = fold([call("remember", "c1"), result("remember", "c1", {}, { undo: true }), call("recall", "c2"), result("recall", "c2", { undone: ["c1"] }), STARTED]);
  assert.deepEqual(undo(done), ["possible", null, null]);
  const over = fold([{ type: "async_task_complete", task_id: "task-c1", function: "run_macro", result: {}, undo: true }], done);
  assert.deepEqual(undo(over), ["possible", null, "possible"]);
  const back = fold([call("undo_last", "c3"), result("undo_last", "c3", { undone: ["c1"] })], over);
  assert.deepEqual(undo(back), ["done", null, "done", null]);
});
