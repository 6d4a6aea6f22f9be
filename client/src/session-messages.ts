// Written by `python -m deploy.session_messages` from the types of the gateway: change them there.

/** Open the session: what the agent is, what it can do, and how it speaks and listens. */
export interface Configure {
  type: "configure";
  instructions?: string;
  greeting?: string | null;
  voice?: string;
  tools?: GivenTool[];
  language?: string;
  timeZone?: string;
  speed?: number;
  bargeInWords?: number;
  filler?: boolean | null;
  pushToTalk?: boolean;
  interim?: boolean;
  voiceCleaner?: boolean;
  output?: "audio" | "text";
  modes?: boolean;
}

/** A tool as a page writes it: `parameters` in any of the three forms, `handler` the text of a function. */
export interface GivenTool {
  name: string;
  description?: string;
  parameters?: Record<string, unknown> | null;
  handler?: string;
}

/** Stop the agent. */
export interface Cancel {
  type: "cancel";
}

/** Begin the conversation anew. */
export interface ResetConversation {
  type: "reset";
}

/** The microphone was paused or released: with `pushToTalk`, the user's turn is over. */
export interface MicrophoneReleased {
  type: "audio_end";
}

/** The session is open. Rates are samples a second of PCM16, little-endian, mono: the microphone's and the speech's. */
export interface Ready {
  type: "ready";
  sampleRate: number;
  ttsSampleRate: number;
}

/** The agent begins to say its greeting. */
export interface Greeting {
  type: "greeting";
  text: string;
}

/** Words of the user so far; each replaces the one before it. An empty text takes them back. */
export interface Transcript {
  type: "transcript";
  text: string;
  final: boolean;
}

/** All that the user said: the agent answers it. */
export interface Turn {
  type: "turn";
  text: string;
}

/** The answer is being made. */
export interface Thinking {
  type: "thinking";
}

/** The whole text of a reply, before its sound ends. `steps` has `Using NAME` for each tool that was called for it. */
export interface Chat {
  type: "chat";
  text: string;
  steps: string[];
}

/** All sound of the reply was sent. */
export interface TtsDone {
  type: "tts_done";
}

/** The reply was stopped: drop the sound that was not played. No more of it follows. */
export interface Cancelled {
  type: "cancelled";
}

/** The history is empty from here on. */
export interface Reset {
  type: "reset";
}

/** Something that the page's author may want to know, such as a voice that does not exist. */
export interface Notice {
  type: "notice";
  message: string;
}

/** Something went wrong. `field` and `limit` name the invalid part of a message; `retryable`: the same may work later. */
export interface Error {
  type: "error";
  message: string;
  code: string;
  retryable: boolean;
  field?: string | null;
  limit?: number | string | null;
  retry_after_ms?: number | null;
}

export type ClientMessage = Configure | Cancel | ResetConversation | MicrophoneReleased;

export type ServerMessage = Ready | Greeting | Transcript | Turn | Thinking | Chat | TtsDone | Cancelled | Reset | Notice | Error;
