/** Calls of functions, requests for approval and tasks in a conversation, and what the person decides about them. Owns their steps. Pure. */
import { append, type Approval, type Call, type Conversation, type Entry, key, type MacroRun, replace, type Task } from "./entries";
import type { Decision, Json, ServerMessage } from "./socket/protocol";

/** The messages that are about the work of functions. */
export type WorkMessage = Extract<
  ServerMessage,
  { type: "run_started" | "run_step" | "run_waiting" | "run_ended" | "function_call" | "function_result" | "function_cancelled" | "async_task_started" | "async_task_complete" | "task_progress" | "approval_requested" | "approval_ended" }
>;

const ENDS: Record<string, Task["status"]> = { CANCELLED: "cancelled", INTERRUPTED: "interrupted" };

function failed(result: unknown): boolean {
  if (typeof result !== "object" || result === null) return false;
  const fields = result as Json;
  return fields["success"] === false || fields["error"] !== undefined;
}

function ended(result: unknown): Task["status"] {
  return failed(result) ? (ENDS[String((result as Json)["code"])] ?? "failed") : "done";
}

function ofCall(name: string, id: string | undefined): (entry: Entry) => entry is Call {
  return (entry): entry is Call => entry.kind === "call" && (id === undefined ? entry.name === name && entry.status === "running" : entry.id === id);
}

function ofTask(id: string): (entry: Entry) => entry is Task {
  return (entry): entry is Task => entry.kind === "task" && entry.id === id;
}

function ofApproval(id: string): (entry: Entry) => entry is Approval {
  return (entry): entry is Approval => entry.kind === "approval" && entry.id === id;
}

/** The functions whose result says which calls were taken back. */
const UNDOES = ["undo_last", "run_tool"];

/** The conversation with the calls marked that a result says were taken back. */
function undone<Shown extends Conversation>(shown: Shown, name: string, result: unknown): Shown {
  const calls: unknown = UNDOES.includes(name) && typeof result === "object" && result !== null ? (result as Json)["undone"] : null;
  if (!Array.isArray(calls)) return shown;
  const mark = (entry: Entry): Entry => {
    const id = entry.kind === "call" ? entry.id : entry.kind === "task" ? entry.id.replace(/^task-/, "") : null;
    return (entry.kind === "call" || entry.kind === "task") && id !== null && calls.includes(id) ? { ...entry, undo: "done" } : entry;
  };
  return { ...shown, conversation: shown.conversation.map(mark) };
}

/** The conversation after a message about work; `now` in ms of any clock that does not jump, null for what happened before. */
export function receiveWork<Shown extends Conversation>(shown: Shown, message: WorkMessage, now: number | null): Shown {
  const since = (then: number | null): number | null => (now === null || then === null ? null : now - then);
  switch (message.type) {
    case "function_call":
      return append(shown, {
        kind: "call", key: key(), id: message.fn_call_id ?? null, name: message.name, args: message.args, status: "running", result: null, ms: null, startedAt: now, undo: null,
      });
    case "function_result": {
      const { name, fn_call_id: id, result, undo = false } = message;
      const after = replace(shown, ofCall(name, id), (call) => ({ ...call, status: failed(result) ? "failed" : "done", result, ms: since(call.startedAt), undo: undo ? "possible" : null })) ?? shown;
      return undone(after, name, result);
    }
    case "function_cancelled":
      return replace(shown, ofCall(message.name, message.fn_call_id), (call) => ({ ...call, status: "cancelled", ms: since(call.startedAt) })) ?? shown;
    case "async_task_started":
      return append(shown, {
        kind: "task", key: key(), id: message.task_id, name: message.function, status: "running", done: null, message: "", run: null, cancelling: false, result: null, startedAt: now, ms: null, undo: null,
      });
    case "task_progress": {
      const { task_id: id, done, message: words = "" } = message;
      return replace(shown, ofTask(id), (task) => ({ ...task, done: Math.max(0, Math.min(1, done)), message: words })) ?? shown;
    }
    case "async_task_complete": {
      const { task_id: id, result, undo = false } = message;
      const after = replace(shown, ofTask(id), (task) => ({ ...task, status: ended(result), result, ms: since(task.startedAt), undo: undo ? "possible" : null })) ?? shown;
      return undone(after, message.function, result);
    }
    case "approval_requested": {
      const { approval_id: id, fn_call_id: callId = "", name, args, effect = "destructive", question, expires_ts: expires = 0, scopes = ["arguments", "function"] } = message;
      return append(shown, { kind: "approval", key: key(), id, callId, name, args, effect, question, expiresAt: expires / 1000, scopes, answer: null, outcome: null, by: "" });
    }
    case "approval_ended": {
      const { approval_id: id, outcome, by = "" } = message;
      return replace(shown, ofApproval(id), (approval) => ({ ...approval, outcome, by })) ?? shown;
    }
    case "run_started":
    case "run_step":
    case "run_waiting":
    case "run_ended":
      return replace(shown, ofTask(`task-${message.run_id}`), (task) => ran(task, message)) ?? shown;
  }
}

/** A task after its run went on: whatever it says, it does not ask what it asked before. */
function ran(task: Task, message: Extract<WorkMessage, { run_id: string }>): Task {
  const before: MacroRun = task.run ?? { id: message.run_id, name: "", steps: 0, seen: [], question: null };
  const run: MacroRun = { ...before, question: null };
  if (message.type === "run_started") return { ...task, run: { ...run, name: message.name, steps: message.steps } };
  if (message.type === "run_waiting") {
    const { reason, step = "", question = "" } = message;
    if (reason === "queued") return { ...task, run, message: "waits for an earlier run" };
    return { ...task, run: { ...run, question: reason === "ask" || reason === "error" || reason === "step" ? { reason, step, text: question, answer: null } : null } };
  }
  if (message.type === "run_ended" || message.step.includes(".")) return { ...task, run };
  const seen = run.seen.includes(message.step) ? run.seen : [...run.seen, message.step];
  const over = seen.length - (message.state === "started" ? 1 : 0);
  return { ...task, run: { ...run, seen }, message: message.step, done: run.steps > 0 ? Math.min(1, over / run.steps) : null };
}

/** A decision of the person, as it is shown until the server says what came of it. */
interface Decided<Shown, Kind> {
  snapshot: Shown;
  entry: Kind;
}

/** The conversation with an answer to a request for approval; null where none can be given. */
export function answered<Shown extends Conversation>(shown: Shown, id: string, answer: Decision): Decided<Shown, Approval> | null {
  const open = shown.conversation.findLast(ofApproval(id));
  if (open === undefined || open.outcome !== null || open.answer !== null) return null;
  const entry = { ...open, answer };
  const snapshot = replace(shown, ofApproval(id), () => entry);
  return snapshot && { snapshot, entry };
}

/** The conversation with a task that is asked to end; null where it is over. */
export function cancelling<Shown extends Conversation>(shown: Shown, id: string): Decided<Shown, Task> | null {
  const running = shown.conversation.findLast(ofTask(id));
  if (running?.status !== "running") return null;
  const entry = { ...running, cancelling: true };
  const snapshot = replace(shown, ofTask(id), () => entry);
  return snapshot && { snapshot, entry };
}

/** The conversation with an answer to the question of a run; null where it asks nothing. */
export function told<Shown extends Conversation>(shown: Shown, id: string, answer: string): Decided<Shown, Task> | null {
  const task = shown.conversation.findLast(ofTask(`task-${id}`));
  if (task?.run?.question?.answer !== null || task.status !== "running") return null;
  const entry = { ...task, run: { ...task.run, question: { ...task.run.question, answer } } };
  const snapshot = replace(shown, ofTask(task.id), () => entry);
  return snapshot && { snapshot, entry };
}

/** The entry after the call is over for good. */
export function over(entry: Call | Approval | Task): Entry {
  if (entry.kind === "approval") return entry.outcome === null ? { ...entry, outcome: "withdrawn" } : entry;
  if (entry.status !== "running") return entry;
  return entry.kind === "call" ? { ...entry, status: "cancelled" } : { ...entry, status: "left" };
}

/** The requests for approval that are open, oldest first. */
export function openApprovals({ conversation }: Conversation): Approval[] {
  return conversation.filter((entry): entry is Approval => entry.kind === "approval" && entry.outcome === null);
}

/** The tasks that run, oldest first. */
export function openTasks({ conversation }: Conversation): Task[] {
  return conversation.filter((entry): entry is Task => entry.kind === "task" && entry.status === "running");
}
