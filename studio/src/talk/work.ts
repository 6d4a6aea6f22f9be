/** The work of functions as Talk shows it: one card for each piece of work, in words. Pure. */
import type { Approval, Call, Entry, Task } from "voxbridge/react";
import { functionName } from "../words";

/** A task with the arguments of the call that began it, where they are known. */
export type Shown = Exclude<Entry, Task> | (Task & { args: Record<string, unknown> | null });

/** What a result says that its call led to. */
function taskOf({ result }: Call): string {
  const id = typeof result === "object" && result !== null ? (result as Record<string, unknown>)["task_id"] : "";
  return typeof id === "string" ? id : "";
}

/** The conversation without calls that another card stands for: a request for approval, or the task that a call became. Open requests stand elsewhere. */
export function shown(entries: readonly Entry[], asking: readonly Approval[]): Shown[] {
  const waiting = new Set(asking.map(({ id }) => id));
  const asked = new Set(entries.flatMap((entry) => (entry.kind === "approval" ? [entry.callId] : [])));
  const tasks = new Set(entries.flatMap((entry) => (entry.kind === "task" ? [entry.id] : [])));
  const args = new Map<string, Record<string, unknown>>();
  const found: Shown[] = [];
  for (const entry of entries) {
    if (entry.kind === "call") {
      const task = taskOf(entry);
      if (task !== "") args.set(task, entry.args);
      if (!tasks.has(task) && (entry.id === null || !asked.has(entry.id))) found.push(entry);
    } else if (entry.kind === "task") {
      found.push({ ...entry, args: args.get(entry.id) ?? null });
    } else if (entry.kind !== "approval" || !waiting.has(entry.id)) {
      found.push(entry);
    }
  }
  return found;
}

/** What became of a request for approval, in a sentence. */
export function became({ answer, outcome, by }: Pick<Approval, "answer" | "outcome" | "by">): string {
  const mine = answer?.answer;
  if (outcome === null) return mine === undefined ? "" : `Your ${mine === "approved" ? "yes" : "no"} is on its way.`;
  const late = mine !== undefined && (mine !== outcome || by === "voice");
  const after = late ? ", before your click" : "";
  if (outcome === "lapsed") return `Nobody answered in time${after}, so it was not done.`;
  if (outcome === "withdrawn") return "The question is closed, and nothing was done.";
  const word = outcome === "approved" ? "yes" : "no";
  if (by === "voice") return `You said ${word} aloud${after}.`;
  if (mine !== outcome) return mine === undefined ? `It was answered with ${word}.` : `It was answered with ${word} elsewhere${after}.`;
  const always = outcome === "approved" && answer !== null && answer.scope !== "once";
  return always ? "You said yes, for good." : `You said ${word}.`;
}

/** Whether a click of this page was not the answer that counts. */
export function isLate({ answer, outcome, by }: Pick<Approval, "answer" | "outcome" | "by">): boolean {
  return answer !== null && outcome !== null && outcome !== "withdrawn" && (answer.answer !== outcome || by === "voice");
}

/** The longest time that a request is open (docs/tools.md); where more seems to be left, the clocks do not agree. */
const OPEN_MS = 120_000;

/** `1:43 left`; empty where nothing is left, or this clock does not agree with the server's. */
export function left(expiresAt: number, now: number): string {
  const ms = expiresAt - now;
  if (ms <= 0 || ms > OPEN_MS + 5_000) return "";
  const seconds = Math.ceil(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`;
}

export const TASK_WORDS: Record<Task["status"], string> = {
  running: "running",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "not known",
  left: "not over yet",
};

/** How far a task is, or how it ended, in two words. */
export function progress({ status, done, cancelling }: Pick<Task, "status" | "done" | "cancelling">): string {
  if (status !== "running") return TASK_WORDS[status];
  if (cancelling) return "stopping";
  return done === null ? TASK_WORDS.running : `${Math.round(done * 100)} %`;
}

export const EFFECT_WORDS: Record<Approval["effect"], string> = { read: "reads", write: "changes", destructive: "destroys" };

/** Characters of an argument, and arguments, that a request shows at once; all are in the log. */
const VALUE_LIMIT = 300;
export const ARGUMENTS_LIMIT = 8;

/** Arguments for a person: their names in words, their values as text. */
export function facts(args: Record<string, unknown>): [name: string, value: string][] {
  return Object.entries(args).slice(0, ARGUMENTS_LIMIT).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [functionName(name), text.length > VALUE_LIMIT ? `${text.slice(0, VALUE_LIMIT)}…` : text];
  });
}
