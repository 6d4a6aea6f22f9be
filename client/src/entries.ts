/** What a conversation is shown as: lines, calls of functions, requests for approval, tasks, handoffs. Owns their shapes and their bound. Pure. */
import type { Decision, Effect, Json } from "./socket/protocol";

export interface Said {
  kind: "said";
  key: string;
  role: "user" | "assistant";
  text: string;
  final: boolean;
  typed: boolean;
  interrupted: boolean;
  /** It was not the person who interrupted: the socket was lost, or the worker. The rest is said again in another line. */
  cut: boolean;
  /** What was made and not heard, after an interruption. */
  unheard: string;
  turn: number | null;
  generation: number | null;
  seq: number | null;
  /** Who said it, where agents have names. */
  agent: string;
}

/** One agent hands the conversation over to another. */
export interface Handoff {
  kind: "handoff";
  key: string;
  from: string;
  to: string;
  reason: string;
  /** Until the other one could speak; null before. */
  ms: number | null;
}

export interface Call {
  kind: "call";
  key: string;
  id: string | null;
  name: string;
  args: Json;
  status: "running" | "done" | "failed" | "cancelled";
  result: unknown;
  /** Milliseconds between the call and its result, where this page saw both happen. */
  ms: number | null;
  startedAt: number | null;
  /** Whether what it did can be taken back, or was; null where it cannot. */
  undo: "possible" | "done" | null;
}

/** A call waits for the person's approval, or waited for it. */
export interface Approval {
  kind: "approval";
  key: string;
  id: string;
  /** The call that waits. */
  callId: string;
  name: string;
  args: Json;
  effect: Effect;
  /** What to ask. */
  question: string;
  /** When it lapses, in ms of the server's Unix clock. */
  expiresAt: number;
  /** Ways in which a yes can stand for later calls; none where it never does. */
  scopes: readonly ("arguments" | "function")[];
  /** What this page answered. Another answer may have come first: `outcome` and `by` say what counts. */
  answer: Decision | null;
  /** Null while it is open. `withdrawn`: nothing waits for it any more. */
  outcome: "approved" | "denied" | "lapsed" | "withdrawn" | null;
  /** How the answer was given; empty where there was none. */
  by: "voice" | "click" | "";
}

/** What a run asks the person: a question of its own, what to do after a step that failed, or whether the next step begins. */
export interface RunQuestion {
  reason: "ask" | "error" | "step";
  step: string;
  text: string;
  /** What this page answered; null before. */
  answer: string | null;
}

/** The run of a macro or a workflow that a task is. */
export interface MacroRun {
  id: string;
  name: string;
  /** How many steps it has, and those that have begun or were left out. */
  steps: number;
  seen: readonly string[];
  question: RunQuestion | null;
}

export interface Task {
  kind: "task";
  key: string;
  id: string;
  name: string;
  /** `interrupted`: how far it came is not known. `left`: the call ended before it did. */
  status: "running" | "done" | "failed" | "cancelled" | "interrupted" | "left";
  /** How far it is, from 0 to 1; null as long as it does not say. */
  done: number | null;
  /** How far it is, in its own words. */
  message: string;
  /** Null for a task that is not a run. */
  run: MacroRun | null;
  /** This page asked for its end. */
  cancelling: boolean;
  result: unknown;
  startedAt: number | null;
  ms: number | null;
  /** Whether what it did can be taken back, or was; null where it cannot. */
  undo: "possible" | "done" | null;
}

export type Entry = Said | Call | Approval | Task | Handoff;

export const MAX_ENTRIES = 500;

/** What has a conversation, oldest first, at most `MAX_ENTRIES`. */
export interface Conversation {
  conversation: readonly Entry[];
}

let counter = 0;

/** A key for an entry that no other has. */
export function key(): string {
  counter += 1;
  return `e${counter}`;
}

export function append<Shown extends Conversation>(shown: Shown, entry: Entry): Shown {
  return { ...shown, conversation: [...shown.conversation, entry].slice(-MAX_ENTRIES) };
}

/** Replace the newest entry that `match` accepts; null if there is none. */
export function replace<Shown extends Conversation, Kind extends Entry>(shown: Shown, match: (entry: Entry) => entry is Kind, change: (entry: Kind) => Entry): Shown | null {
  const index = shown.conversation.findLastIndex((entry) => match(entry));
  const found = shown.conversation[index];
  if (found === undefined || !match(found)) return null;
  return { ...shown, conversation: shown.conversation.with(index, change(found)) };
}
