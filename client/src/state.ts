/**
 * What the page knows of the call: one immutable snapshot, and a pure step from it to the next.
 * Owns the conversation as it is shown. Levels are not in it: they change 20 times a second and go by `levels`.
 */
import type { AgentErrorFields, Closed } from "./errors";
import type { Json, Latency, Mode, ServerMessage, SessionState } from "./protocol";

export type Connection = "idle" | "connecting" | "connected" | "closed";
export type Microphone = "off" | "asking" | "on" | "muted";
/** The protocol's states, and `idle` while there is no session. */
export type AgentState = SessionState | "idle";

export interface Said {
  kind: "said";
  key: string;
  role: "user" | "assistant";
  text: string;
  final: boolean;
  typed: boolean;
  interrupted: boolean;
  /** What was made and not heard, after an interruption. */
  unheard: string;
  generation: number | null;
  seq: number | null;
}

export interface Call {
  kind: "call";
  key: string;
  id: string | null;
  name: string;
  args: Json;
  status: "running" | "done" | "failed" | "cancelled";
  result: unknown;
  /** Milliseconds between the call and its result, as this page saw them. */
  ms: number | null;
  startedAt: number;
}

export interface Task {
  kind: "task";
  key: string;
  id: string;
  name: string;
  status: "running" | "done" | "failed";
  result: unknown;
  startedAt: number;
  ms: number | null;
}

export type Entry = Said | Call | Task;

export interface Snapshot {
  connection: Connection;
  state: AgentState;
  microphone: Microphone;
  sessionId: string | null;
  mode: Mode | null;
  /** Oldest first, at most `MAX_ENTRIES`. */
  conversation: readonly Entry[];
  turn: number;
  /** Of the last turn that had a spoken answer. */
  latency: Latency | null;
  error: AgentErrorFields | null;
  closed: Closed | null;
  /** The browser stopped the sound; `resumeAudio()` within a click starts it again. */
  audioBlocked: boolean;
  pushToTalk: boolean;
}

export const MAX_ENTRIES = 500;

export const INITIAL: Snapshot = {
  connection: "idle",
  state: "idle",
  microphone: "off",
  sessionId: null,
  mode: null,
  conversation: [],
  turn: 0,
  latency: null,
  error: null,
  closed: null,
  audioBlocked: false,
  pushToTalk: false,
};

let counter = 0;
function key(): string {
  counter += 1;
  return `e${counter}`;
}

function append(snapshot: Snapshot, entry: Entry): Snapshot {
  return { ...snapshot, conversation: [...snapshot.conversation, entry].slice(-MAX_ENTRIES) };
}

/** Replace the newest entry that `match` accepts; null if there is none. */
function replace<K extends Entry>(snapshot: Snapshot, match: (entry: Entry) => entry is K, change: (entry: K) => Entry): Snapshot | null {
  const index = snapshot.conversation.findLastIndex((entry) => match(entry));
  const found = snapshot.conversation[index];
  if (found === undefined || !match(found)) return null;
  return { ...snapshot, conversation: snapshot.conversation.with(index, change(found)) };
}

function failed(result: unknown): boolean {
  if (typeof result !== "object" || result === null) return false;
  const fields = result as Json;
  return fields["success"] === false || fields["error"] !== undefined;
}

/** What the user typed, shown at once. */
export function typed(snapshot: Snapshot, text: string): Snapshot {
  const said: Said = {
    kind: "said", key: key(), role: "user", text, final: true, typed: true, interrupted: false, unheard: "", generation: null, seq: null,
  };
  return append(snapshot, said);
}

type Transcript = Extract<ServerMessage, { type: "transcript" }>;

function transcript(snapshot: Snapshot, message: Transcript): Snapshot {
  const final = message.final ?? true;
  const generation = message.generation ?? null;
  const update = (entry: Said): Said => ({
    ...entry,
    text: message.text,
    final,
    interrupted: message.interrupted ?? false,
    unheard: message.unheard ?? "",
    generation: generation ?? entry.generation,
    seq: message.seq ?? entry.seq,
  });
  const isSame = (entry: Entry): entry is Said => {
    if (entry.kind !== "said" || entry.role !== message.role) return false;
    if (entry.typed) return final && entry.seq === null && entry.text.trim() === message.text.trim();
    return !entry.final && (entry.generation === null || generation === null || entry.generation === generation);
  };
  const replaced = replace(snapshot, isSame, update);
  if (replaced !== null) return replaced;
  if (message.text.trim() === "" && (message.unheard ?? "") === "") return snapshot;
  return append(
    snapshot,
    update({
      kind: "said", key: key(), role: message.role, text: "", final, typed: false, interrupted: false, unheard: "", generation, seq: null,
    }),
  );
}

function ofCall(name: string, id: string | undefined): (entry: Entry) => entry is Call {
  return (entry): entry is Call => entry.kind === "call" && (id === undefined ? entry.name === name && entry.status === "running" : entry.id === id);
}

/** The snapshot after a message from the server; `now` in ms, of any clock that does not jump. */
export function receive(snapshot: Snapshot, message: ServerMessage, now: number): Snapshot {
  switch (message.type) {
    case "setup_complete":
      return { ...snapshot, connection: "connected", sessionId: message.sessionId, mode: message.mode, error: null };
    case "state":
      return { ...snapshot, state: message.state };
    case "transcript":
      return transcript(snapshot, message);
    case "text":
      return transcript(snapshot, { type: "transcript", role: "assistant", text: message.text, final: true, ...(message.seq === undefined ? {} : { seq: message.seq }) });
    case "turn_complete":
      return { ...snapshot, error: null, turn: message.turn, latency: message.latency && Object.keys(message.latency).length > 0 ? message.latency : snapshot.latency };
    case "function_call":
      return append(snapshot, {
        kind: "call", key: key(), id: message.fn_call_id ?? null, name: message.name, args: message.args, status: "running", result: null, ms: null, startedAt: now,
      });
    case "function_result": {
      const done = (call: Call): Call => ({ ...call, status: failed(message.result) ? "failed" : "done", result: message.result, ms: now - call.startedAt });
      return replace(snapshot, ofCall(message.name, message.fn_call_id), done) ?? snapshot;
    }
    case "function_cancelled":
      return replace(snapshot, ofCall(message.name, message.fn_call_id), (call) => ({ ...call, status: "cancelled", ms: now - call.startedAt })) ?? snapshot;
    case "async_task_started":
      return append(snapshot, { kind: "task", key: key(), id: message.task_id, name: message.function, status: "running", result: null, startedAt: now, ms: null });
    case "async_task_complete": {
      const isTask = (entry: Entry): entry is Task => entry.kind === "task" && entry.id === message.task_id;
      const done = (task: Task): Task => ({ ...task, status: failed(message.result) ? "failed" : "done", result: message.result, ms: now - task.startedAt });
      return replace(snapshot, isTask, done) ?? snapshot;
    }
    case "error": {
      const { message: text, code, retryable, field, limit } = message;
      const action = retryable ? "Try again in a moment." : "See what the message names, then start again.";
      return { ...snapshot, error: { code, message: text, retryable, action, ...(field === undefined ? {} : { field }), ...(limit === undefined ? {} : { limit }) } };
    }
    case "session_ended":
      return { ...snapshot, state: "ended" };
    case "go_away":
    case "start_tour":
      return snapshot;
  }
}

/** The snapshot after the socket closed: nothing is running any more. A call that never came about leaves the agent idle. */
export function disconnected(snapshot: Snapshot, closed: Closed, error: AgentErrorFields | null): Snapshot {
  const conversation = snapshot.conversation.map((entry) => {
    if (entry.kind === "said") return entry.final ? entry : { ...entry, final: true };
    return entry.status === "running" && entry.kind === "call" ? { ...entry, status: "cancelled" as const } : entry;
  });
  return { ...snapshot, conversation, connection: "closed", state: snapshot.sessionId === null ? "idle" : "ended", microphone: "off", closed, error: error ?? snapshot.error, pushToTalk: false, audioBlocked: false };
}
