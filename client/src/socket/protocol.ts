/**
 * The VOX messages with the sub-protocol `voxbridge.v1` (docs/protocol.md, sections 2 to 4).
 * Owns their types and the check of what arrives. Does not own what they do to the page: state.ts does.
 */
import type { PlaybackReport } from "../audio/playback-queue";
import type { Configure } from "../session-messages";

export const SUBPROTOCOL = "voxbridge.v1";
export type Mode = "local" | "echo" | "gemini" | "openai" | "claude";
export type Json = Record<string, unknown>;

export const SESSION_STATES = [
  "connecting",
  "listening",
  "user_speaking",
  "thinking",
  "calling_tool",
  "speaking",
  "restoring",
  "ended",
] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/** Milliseconds after the end of the user's speech, as far as the turn had them. */
export const STAMPS = [
  "end_of_turn",
  "stt_final",
  "llm_first_token",
  "first_sentence",
  "tts_first_audio",
  "first_audio_sent",
  "first_audio_heard",
] as const;
export type Stamp = (typeof STAMPS)[number];
export type Latency = Partial<Record<Stamp, number>>;

/** A function of the page, as the model is told of it. */
export interface DeclaredTool {
  name: string;
  description?: string | undefined;
  /** A JSON Schema of an object; without it the function has no arguments. */
  parameters?: Json | undefined;
  /** How long the page may take; 30,000 by default. */
  timeoutMs?: number | undefined;
}

/** What a function does to the world. */
export type Effect = "read" | "write" | "destructive";
/** What a yes stands for: this call, later ones with these arguments, or any of this function. */
export type Scope = "once" | "arguments" | "function";

/** The person's answer to a request for approval. */
export interface Decision {
  answer: "approved" | "denied";
  scope: Scope;
}

export type ClientMessage =
  | { type: "start"; mode: Mode; model?: string; voice?: string; systemPrompt?: string; agent?: string; output?: "audio" | "text"; record?: boolean; filler?: boolean; token?: string; timeZone?: string; tools?: DeclaredTool[] }
  | { type: "resume"; sessionId: string; resumeToken: string; last_seq: number }
  | { type: "text"; text: string; /** The page's name for the text: sent twice, it counts once. */ id: string }
  | { type: "browser_function_result"; name: string; result: Json; fn_call_id?: string | undefined }
  | ({ type: "playback" } & PlaybackReport)
  | { type: "interrupt" }
  | { type: "audio_end" }
  | { type: "reset" }
  | { type: "output"; output: "audio" | "text" }
  | Configure
  | ({ type: "approval_answer"; approval_id: string } & Decision)
  | { type: "run_answer"; run_id: string; text: string; step: string }
  | { type: "cancel_task"; task_id: string }
  | { type: "awareness"; event_type: string; page?: string; title?: string; error_type?: string; message?: string; key?: string; value?: string }
  | { type: "end" };

interface Fact {
  /** The position in the log; absent on messages about the moment. */
  seq?: number;
}

interface Words extends Fact {
  text: string;
  turn?: number;
  generation?: number;
  interrupted?: boolean;
  unheard?: string;
  /** Who said it, and with which voice; absent where agents have no names. */
  agent?: string;
  voice?: string;
}

/** Who speaks, and who else may. Empty strings where nobody has a name. */
export interface Speaker {
  agent: string;
  agents: readonly string[];
  pipeline: string;
  voice: string;
  model: string;
}

/** Tokens of a turn, as the model's provider counted them. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
  /** Millionths of a US$; nothing where the installation has no price for the model. */
  microdollars?: number;
}

/** The conversation as a whole, for a client whose position the log no longer has. */
export interface Recap {
  transcript: { seq: number; role: "user" | "assistant"; turn: number; text: string; unheard?: string; interrupted?: boolean; agent?: string }[];
  turns: number;
  truncated?: boolean;
}

export type ServerMessage =
  | ({ type: "setup_complete"; sessionId: string; mode: Mode; resumed: boolean; resumeToken?: string; recorded?: boolean } & Partial<Speaker> & Fact)
  | ({ type: "resumed"; sessionId: string; mode: Mode; recovered: boolean; to: number; from?: number; state?: SessionState; snapshot?: Recap; recorded?: boolean } & Partial<Speaker>)
  | ({ type: "restored"; how: "handle" | "reseeded" | "fresh"; cause?: "worker" | "provider"; gap_ms: number; lost: string[] } & Fact)
  | ({ type: "agent"; phase: "started" | "completed"; from: string; to: string; reason?: string; voice?: string; model?: string; ms?: number } & Fact)
  | ({ type: "provider"; status: "connected" | "lost" | "leaving"; provider: string; model: string; resumed_by?: string } & Fact)
  | ({ type: "text" } & Words)
  | ({ type: "transcript"; role: "user" | "assistant"; final?: boolean; continues?: boolean; /** The name of what was typed. */ id?: string } & Words)
  | ({ type: "turn_complete"; turn: number; reason?: string; latency?: Latency; usage?: Usage } & Fact)
  | ({ type: "function_call"; name: string; args: Json; server_handled: boolean; fn_call_id?: string } & Fact)
  | ({ type: "function_result"; name: string; result: unknown; fn_call_id?: string | undefined; /** What it did can be taken back. */ undo?: boolean } & Fact)
  | ({ type: "function_cancelled"; name: string; fn_call_id: string } & Fact)
  | ({ type: "start_tour"; page: string; tour: Json; /** Whether the user named the page. */ named?: boolean } & Fact)
  | ({ type: "async_task_started"; task_id: string; function: string } & Fact)
  | ({ type: "async_task_complete"; task_id: string; function: string; result: unknown; undo?: boolean } & Fact)
  | ({ type: "task_progress"; task_id: string; function: string; done: number; message?: string } & Fact)
  | ({ type: "approval_requested"; approval_id: string; fn_call_id?: string; name: string; args: Json; effect?: Effect; question: string; /** µs of the Unix clock. */ expires_ts?: number; scopes?: ("arguments" | "function")[] } & Fact)
  | ({ type: "approval_ended"; approval_id: string; name: string; outcome: "approved" | "denied" | "lapsed" | "withdrawn"; by?: "voice" | "click" | "" } & Fact)
  | ({ type: "run_started"; run_id: string; name: string; kind?: "macro" | "workflow"; steps: number; inputs?: Json } & Fact)
  | ({ type: "run_step"; run_id: string; step: string; attempt?: number; state: "started" | "completed" | "failed" | "interrupted" | "skipped"; action?: string; target?: string; args?: string; result?: string; error?: Json } & Fact)
  | ({ type: "run_waiting"; run_id: string; name: string; reason: "ask" | "error" | "step" | "approval" | "confirm" | "queued"; step?: string; question?: string; /** µs of the Unix clock. */ expires_ts?: number } & Fact)
  | ({ type: "run_ended"; run_id: string; name: string; outcome: "completed" | "failed" | "cancelled"; ms?: number; step?: string; reason?: string; result?: Json; error?: Json } & Fact)
  | ({ type: "go_away"; session_token?: string; message: string } & Fact)
  | ({ type: "reset" } & Fact)
  | ({ type: "output"; output: "audio" | "text"; reason?: string } & Fact)
  | { type: "notice"; message: string }
  | { type: "state"; state: SessionState; reason?: string }
  | ({ type: "session_ended"; reason: string } & Fact)
  | ({ type: "error"; message: string; code: string; retryable: boolean; field?: string; limit?: number | string } & Fact);

export type ServerMessageType = ServerMessage["type"];
type Check = "string" | "number" | "boolean" | "object" | "any";

/** The fields without which a message means nothing; the rest may be absent. */
const REQUIRED: Record<ServerMessageType, Record<string, Check>> = {
  setup_complete: { sessionId: "string", mode: "string" },
  resumed: { sessionId: "string", mode: "string", recovered: "boolean", to: "number" },
  restored: { how: "string" },
  agent: { phase: "string", from: "string", to: "string" },
  provider: { status: "string" },
  text: { text: "string" },
  transcript: { role: "string", text: "string" },
  turn_complete: { turn: "number" },
  function_call: { name: "string", args: "object", server_handled: "boolean" },
  function_result: { name: "string", result: "any" },
  function_cancelled: { name: "string", fn_call_id: "string" },
  start_tour: { page: "string" },
  async_task_started: { task_id: "string", function: "string" },
  async_task_complete: { task_id: "string", function: "string", result: "any" },
  task_progress: { task_id: "string", done: "number" },
  approval_requested: { approval_id: "string", name: "string", args: "object", question: "string" },
  approval_ended: { approval_id: "string", outcome: "string" },
  run_started: { run_id: "string", name: "string", steps: "number" },
  run_step: { run_id: "string", step: "string", state: "string" },
  run_waiting: { run_id: "string", reason: "string" },
  run_ended: { run_id: "string", outcome: "string" },
  go_away: { message: "string" },
  reset: {},
  output: { output: "string" },
  notice: { message: "string" },
  state: { state: "string" },
  session_ended: { reason: "string" },
  error: { message: "string" },
};

export interface Fault {
  /** What was wrong, for the developer who reads it. */
  fault: string;
}

function isType(type: unknown): type is ServerMessageType {
  return typeof type === "string" && Object.hasOwn(REQUIRED, type);
}

function fits(value: unknown, check: Check): boolean {
  if (check === "any") return value !== undefined;
  if (check === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === check;
}

function isRecap(value: unknown): value is Recap {
  if (!fits(value, "object")) return false;
  const { transcript, turns } = value as Json;
  const isLine = (line: unknown): boolean => fits(line, "object") && fits((line as Json)["role"], "string") && fits((line as Json)["text"], "string");
  return Array.isArray(transcript) && fits(turns, "number") && transcript.every(isLine);
}

/** Decode one text message. An unknown type is `null`: a newer server may say more than this client knows. */
export function decode(text: string): ServerMessage | Fault | null {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return { fault: "The message is not JSON." };
  }
  if (!fits(message, "object")) return { fault: "The message is not an object." };
  const fields = message as Json;
  const type = fields["type"];
  if (typeof type !== "string") return { fault: "The message has no type." };
  if (!isType(type)) return null;
  for (const [field, check] of Object.entries(REQUIRED[type])) {
    if (!fits(fields[field], check)) return { fault: `${type}.${field} is missing or not of type ${check}.` };
  }
  if (type === "state" && !(SESSION_STATES as readonly unknown[]).includes(fields["state"])) return null;
  if (type === "resumed" && fields["recovered"] !== true && !isRecap(fields["snapshot"])) return { fault: "resumed.snapshot is missing or not a transcript." };
  if (type === "restored") return { gap_ms: 0, lost: [], ...fields } as unknown as ServerMessage;
  if (type === "error") return { code: "INTERNAL", retryable: false, ...fields } as unknown as ServerMessage;
  return fields as unknown as ServerMessage;
}
