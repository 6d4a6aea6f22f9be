/** What can go wrong in a call, each with what to do next. Owns the codes of the browser's side; the server's come with its messages. */

export type ClientCode =
  | "MIC_DENIED"
  | "MIC_NOT_FOUND"
  | "MIC_IN_USE"
  | "MIC_LOST"
  | "VOICE_AWAY"
  | "INSECURE_CONTEXT"
  | "UNSUPPORTED_BROWSER"
  | "AUDIO_BLOCKED"
  | "CONNECTION_FAILED"
  | "CONNECTION_LOST"
  | "CANCELLED"
  | "INVALID_MESSAGE";

export interface AgentErrorFields {
  code: string;
  message: string;
  /** What the person can do now. */
  action: string;
  retryable: boolean;
  field?: string;
  limit?: number | string;
}

const CLIENT_ERRORS: Record<ClientCode, [message: string, action: string, retryable: boolean]> = {
  MIC_DENIED: [
    "The browser did not give this page the microphone.",
    "Allow it in the address bar's site settings and start again, or type instead.",
    true,
  ],
  MIC_NOT_FOUND: ["No microphone was found.", "Connect one and start again, or type instead.", true],
  MIC_IN_USE: ["The microphone could not be opened.", "Close the program that uses it and start again, or type instead.", true],
  MIC_LOST: ["The microphone went away.", "Connect it again and unmute, or type instead.", true],
  VOICE_AWAY: ["The voice is away at the moment.", "Type, or press the microphone to try again.", true],
  INSECURE_CONTEXT: [
    "Browsers give the microphone only to secure pages.",
    "Open it over https, or here as http://localhost.",
    false,
  ],
  UNSUPPORTED_BROWSER: ["This browser lacks AudioWorklet or Worker.", "Use a current Chrome, Firefox or Safari.", false],
  AUDIO_BLOCKED: ["The browser paused the sound.", "Tap “Resume sound”.", true],
  CONNECTION_FAILED: ["The gateway could not be reached.", "Check that Voxbridge is running, then start again.", true],
  CONNECTION_LOST: ["The connection was lost, and the call could not be resumed.", "Start again; what was said is kept under Sessions.", true],
  CANCELLED: ["The call was ended before it began.", "Start again whenever you like.", true],
  INVALID_MESSAGE: ["The gateway sent a message that this page does not understand.", "Reload the page to get the matching version.", false],
};

export class AgentError extends Error implements AgentErrorFields {
  override readonly name = "AgentError";
  readonly code: string;
  readonly action: string;
  readonly retryable: boolean;
  readonly field?: string;
  readonly limit?: number | string;

  constructor(fields: AgentErrorFields) {
    super(fields.message);
    this.code = fields.code;
    this.action = fields.action;
    this.retryable = fields.retryable;
    if (fields.field !== undefined) this.field = fields.field;
    if (fields.limit !== undefined) this.limit = fields.limit;
  }

  static of(code: ClientCode, detail?: string): AgentError {
    const [message, action, retryable] = CLIENT_ERRORS[code];
    return new AgentError({ code, message: detail === undefined ? message : `${message} (${detail})`, action, retryable });
  }
}

/** Whether an error says why the person cannot talk: it holds until they do, or go on in text. */
export function isAboutVoice(error: AgentErrorFields | null): boolean {
  return error !== null && /^(MIC|VOICE)_/.test(error.code);
}

/** The error behind a refused `getUserMedia`. */
export function microphoneError(cause: unknown): AgentError {
  const name = cause instanceof Error ? cause.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") return AgentError.of("MIC_DENIED");
  if (name === "NotFoundError" || name === "OverconstrainedError") return AgentError.of("MIC_NOT_FOUND");
  return AgentError.of("MIC_IN_USE", name === "" ? undefined : name);
}

export interface Closed {
  code: number;
  /** In words for a person. */
  reason: string;
  /** Whether starting again is likely to work. */
  retryable: boolean;
  /** The call came to its end, rather than being cut off. */
  ended: boolean;
}

/** The script of the socket's worker failed: no socket can be opened from there. */
export const WORKER_FAILED = 4999;
/** Another window resumed the session. */
export const TAKEN_OVER = 4010;
/** There is no session to resume. */
export const OVER = 4004;

/** What to do after a close: nothing, resume at once, resume later, or leave the call to the window that took it. */
export type Next = "stop" | "again" | "later" | "taken" | "over";

/** docs/protocol.md, section 5. A code below 4000 that is not here is a lost connection, one above is a refusal. */
const CLOSE_CODES: Record<number, [next: Next, reason: string]> = {
  1000: ["stop", "The call ended."],
  1001: ["again", "The gateway is stopping."],
  1009: ["stop", "A message was larger than the gateway accepts."],
  1011: ["again", "The gateway had a fault."],
  1012: ["again", "The gateway is restarting."],
  1013: ["later", "The gateway cannot go on with the call at the moment."],
  [OVER]: ["over", "The call has ended: it was not resumed in time."],
  4008: ["again", "This page read too slowly and was disconnected."],
  4009: ["stop", "This page sent too many wrong messages."],
  [TAKEN_OVER]: ["taken", "The call goes on in another window."],
  [WORKER_FAILED]: ["stop", "The page's connection failed. Reload the page."],
};

export function afterClose(code: number): { next: Next; reason: string } {
  const [next, reason] = CLOSE_CODES[code] ?? [code >= 4000 ? "stop" : "again", "The connection was lost."];
  return { next, reason };
}

/** What a close code means for a call that is not taken up again. */
export function describeClose(code: number, reason: string, ended: boolean): Closed {
  const { next, reason: meaning } = afterClose(code);
  if (ended || code === 1000) return { code, reason: reason === "" ? "The call ended." : reason, retryable: true, ended: true };
  return { code, reason: meaning, retryable: next !== "stop", ended: next === "over" };
}
