/** Tasks, approvals and runs in words. Pure. */
import { duration, functionName } from "../words";
import type { Attempt, Run, RunState, Standing, TaskCard, Trace } from "./work-api";

export const TASK_STATES: Record<TaskCard["state"], string> = {
  needs_approval: "waits for approval",
  running: "running",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "not known",
  declined: "not approved",
};

export const RUN_STATES: Record<RunState, string> = {
  queued: "queued",
  waiting: "waits",
  running: "running",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
};

export const STEP_STATES: Record<Attempt["state"], string> = {
  running: "running",
  completed: "done",
  failed: "failed",
  interrupted: "not known",
  skipped: "left out",
};

export function isOver(state: RunState): boolean {
  return state === "completed" || state === "failed" || state === "cancelled";
}

/** Open tasks by where they are listed: outside calls, and in other calls than this one, whose tasks its own events tell. */
export function placed(tasks: readonly TaskCard[], call: string | null): { outside: TaskCard[]; others: TaskCard[] } {
  return {
    outside: tasks.filter(({ session }) => session === undefined),
    others: tasks.filter(({ session }) => session !== undefined && session !== call),
  };
}

/** What a task is about, after its name. */
export function about({ label, message, due_at_ms: due }: Pick<TaskCard, "label" | "message" | "due_at_ms">, now: number): string {
  const rings = due === undefined ? "" : due <= now ? "due now" : `due in ${duration(Math.ceil((due - now) / 1000) * 1000)}`;
  return [label ?? "", message ?? "", rings].filter((words) => words !== "").join(" · ");
}

/** Why a run is not over, or how it ended, in a sentence. */
export function why({ state, waits_for: waits, question = "", error, reason = "", attempts = [] }: Run & Pick<Trace, "attempts">): string {
  if (state === "queued" || waits === "queued") return "It waits for an earlier run.";
  if (waits === "approval" || waits === "confirm") return question === "" ? "It waits for your approval." : question;
  if (state === "waiting") return question === "" ? "It waits for an answer." : question;
  if (state === "failed") {
    const at = attempts.findLast((one) => one.state === "failed" || one.state === "interrupted")?.step;
    return `It failed${at === undefined ? "" : ` at ${at}`}: ${error?.message ?? "the reason is not known."}`;
  }
  if (state === "cancelled") return reason === "" ? "It was cancelled." : `It was cancelled: ${reason}.`;
  return "";
}

/** What a step does: `calls current time`, `says`, `waits`. */
export function does({ action, target }: Pick<Attempt, "action" | "target">): string {
  if (target !== "") return action === "run" ? `runs ${target}` : functionName(target);
  const words: Record<string, string> = { say: "says a text", ask: "asks you", wait: "waits", stop: "stops", call: "calls a function", run: "runs a macro" };
  return words[action] ?? action;
}

/** From the start of the run to that of the step, and for how long it ran. */
export function times({ started_at_ms: started, ended_at_ms: ended }: Attempt, origin: number): string {
  const at = `at ${duration(Math.max(0, started - origin))}`;
  return ended === undefined ? at : `${at}, for ${duration(Math.max(0, ended - started))}`;
}

/** JSON as it is read by a person, where it is whole. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** What somebody wrote as an input of a macro: a number or yes/no where it is one, else the text. */
export function input(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  return trimmed !== "" && Number.isFinite(Number(trimmed)) ? Number(trimmed) : text;
}

/** Standing approvals by function: null stands for any arguments. */
export function byFunction(standing: readonly Standing[]): [name: string, values: (Record<string, unknown> | null)[]][] {
  const found = new Map<string, (Record<string, unknown> | null)[]>();
  for (const one of standing) found.set(one.function, [...(found.get(one.function) ?? []), one.arguments ?? null]);
  return [...found];
}
