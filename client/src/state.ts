/**
 * What the page knows of the call: one immutable snapshot, and a pure step from it to the next.
 * Owns what is said, and by whom; the work of functions is `work`'s. Levels are not in it: they change 20 times a second and go by `levels`.
 */
import type { Interruption } from "./resume/backoff";
import { append, type Entry, type Handoff, key, MAX_ENTRIES, replace, type Said } from "./entries";
import { type AgentErrorFields, type Closed, isAboutVoice } from "./errors";
import type { Latency, Mode, Recap, ServerMessage, SessionState, Speaker, Usage } from "./socket/protocol";
import { over, receiveWork } from "./work";

export type Connection = "idle" | "connecting" | "connected" | "reconnecting" | "closed";
export type Microphone = "off" | "asking" | "on" | "muted";
/** The protocol's states; `idle` while there is no session, `reconnecting` without a socket, `elsewhere` when another window has the call. */
export type AgentState = SessionState | "idle" | "reconnecting" | "elsewhere";

/** What became of an interruption, in a sentence. */
export interface Notice {
  text: string;
  /** ms of the agent's clock. */
  at: number;
}

export interface Snapshot {
  connection: Connection;
  state: AgentState;
  /** Why the session is in this state, where the server said so. */
  reason: string;
  /** While the connection is `reconnecting`. */
  interruption: Interruption | null;
  notice: Notice | null;
  microphone: Microphone;
  sessionId: string | null;
  mode: Mode | null;
  /** Whether the audio of this call is kept. */
  recorded: boolean;
  /** Oldest first, at most `MAX_ENTRIES`. */
  conversation: readonly Entry[];
  turn: number;
  /** Of the last turn that had a spoken answer. */
  latency: Latency | null;
  speaker: Speaker;
  /** Tokens of the last turn, and of all turns that this page knows of. */
  usage: Usage;
  spent: Usage;
  error: AgentErrorFields | null;
  closed: Closed | null;
  /** The browser stopped the sound; `resumeAudio()` within a click starts it again. */
  audioBlocked: boolean;
  pushToTalk: boolean;
  /** The reply that lost its sound with a socket, by its generation. */
  cut: number | null;
}

const NONE: Usage = { input_tokens: 0, output_tokens: 0 };

export const INITIAL: Snapshot = {
  connection: "idle",
  state: "idle",
  reason: "",
  interruption: null,
  notice: null,
  microphone: "off",
  sessionId: null,
  mode: null,
  recorded: false,
  conversation: [],
  turn: 0,
  latency: null,
  speaker: { agent: "", agents: [], pipeline: "", voice: "", model: "" },
  usage: NONE,
  spent: NONE,
  error: null,
  closed: null,
  audioBlocked: false,
  pushToTalk: false,
  cut: null,
};

function line(role: Said["role"], more: Partial<Said>): Said {
  return {
    kind: "said", key: key(), role, text: "", final: true, typed: false, interrupted: false, cut: false, unheard: "", turn: null, generation: null, seq: null, agent: "", ...more,
  };
}

/** What the user typed, shown at once. */
export function typed(snapshot: Snapshot, text: string): Snapshot {
  return append(snapshot, line("user", { text, typed: true }));
}

type Transcript = Extract<ServerMessage, { type: "transcript" }>;

/** A turn whose reply goes on in another line was cut off before it, and not by the person: that would have been another turn. */
function continued(conversation: readonly Entry[]): readonly Entry[] {
  const last = conversation.at(-1);
  if (last?.kind !== "said" || last.role !== "assistant" || !last.turn) return conversation;
  const goesOn = (entry: Entry): entry is Said => entry !== last && entry.kind === "said" && entry.role === "assistant" && entry.interrupted && !entry.cut && entry.turn === last.turn;
  return conversation.some(goesOn) ? conversation.map((entry) => (goesOn(entry) ? { ...entry, cut: true } : entry)) : conversation;
}

/** The user goes on with a turn that had been taken for over: its line grows, and what was shown of these words until now makes way. */
function goesOn(snapshot: Snapshot, message: Transcript): Snapshot | null {
  const isBegun = (entry: Entry): entry is Said => entry.kind === "said" && entry.role === "user" && entry.final && entry.turn === (message.turn ?? null);
  const grown = replace(snapshot, isBegun, (entry) => ({ ...entry, text: `${entry.text} ${message.text}` }));
  return grown && { ...grown, conversation: grown.conversation.filter((entry) => entry.kind !== "said" || entry.role !== "user" || entry.final) };
}

/** Nothing of a reply is going to be said: its words are not shown any more. */
function withdrawn(snapshot: Snapshot, { generation }: Transcript): Snapshot {
  return { ...snapshot, conversation: snapshot.conversation.filter((entry) => entry.kind !== "said" || entry.final || entry.generation !== generation) };
}

/** What was heard of the user goes nowhere, or was sent by hand. */
function unsaid(snapshot: Snapshot): Snapshot {
  return { ...snapshot, conversation: snapshot.conversation.filter((entry) => entry.kind !== "said" || entry.role !== "user" || entry.final || entry.typed) };
}

function transcript(snapshot: Snapshot, message: Transcript): Snapshot {
  if (message.final === false && message.text === "") return message.role === "assistant" ? withdrawn(snapshot, message) : unsaid(snapshot);
  const after = (message.continues === true ? goesOn(snapshot, message) : null) ?? said(snapshot, message);
  return after === snapshot ? snapshot : { ...after, conversation: continued(after.conversation) };
}

function said(snapshot: Snapshot, message: Transcript): Snapshot {
  const final = message.final ?? true;
  const generation = message.generation ?? null;
  const update = (entry: Said): Said => ({
    ...entry,
    text: message.text,
    final,
    interrupted: message.interrupted ?? false,
    cut: (message.interrupted ?? false) && (snapshot.state === "restoring" || (generation !== null && generation === snapshot.cut)),
    unheard: message.unheard ?? "",
    turn: message.turn ?? entry.turn,
    generation: generation ?? entry.generation,
    seq: message.seq ?? entry.seq,
    agent: message.agent ?? (message.role === "user" ? "" : snapshot.speaker.agent),
  });
  const isSame = (entry: Entry): entry is Said => {
    if (entry.kind !== "said" || entry.role !== message.role) return false;
    if (entry.typed) return final && entry.seq === null && entry.text.trim() === message.text.trim();
    return !entry.final && (entry.generation === null || generation === null || entry.generation === generation);
  };
  const replaced = replace(snapshot, isSame, update);
  if (replaced !== null) return replaced;
  if (message.text.trim() === "" && (message.unheard ?? "") === "") return snapshot;
  return append(snapshot, update(line(message.role, { generation })));
}

/** Who speaks after a message that says so; nothing changes where it does not. */
function speaker({ speaker }: Snapshot, { agent = speaker.agent, agents = speaker.agents, pipeline = speaker.pipeline, voice = speaker.voice, model = speaker.model }: Partial<Speaker>): Speaker {
  return { agent, agents, pipeline, voice, model };
}

/** The snapshot after a message from the server; `now` in ms of any clock that does not jump, null for what happened before. */
export function receive(snapshot: Snapshot, message: ServerMessage, now: number | null): Snapshot {
  switch (message.type) {
    case "setup_complete":
      return { ...snapshot, connection: "connected", sessionId: message.sessionId, mode: message.mode, recorded: message.recorded === true, speaker: speaker(snapshot, message), error: now === null ? snapshot.error : null };
    case "resumed": {
      const { mode, sessionId, snapshot: recap } = message;
      const conversation = recap === undefined ? settled(snapshot) : recapped(snapshot, recap);
      const turn = recap?.turns ?? snapshot.turn;
      return { ...snapshot, connection: "connected", sessionId, mode, recorded: message.recorded === true, conversation, turn, speaker: speaker(snapshot, message), state: message.state ?? "listening", reason: "", interruption: null };
    }
    case "reset":
      return { ...snapshot, conversation: [], turn: 0, latency: null };
    case "state":
      return { ...snapshot, state: message.state, reason: message.reason ?? "" };
    case "transcript":
      return transcript(snapshot, message);
    case "text":
      return transcript(snapshot, { ...message, type: "transcript", role: "assistant", final: true });
    case "turn_complete":
      return {
        ...snapshot,
        error: isAboutVoice(snapshot.error) ? snapshot.error : null,
        turn: message.turn,
        latency: message.latency && Object.keys(message.latency).length > 0 ? message.latency : snapshot.latency,
        ...spent(snapshot, message.usage),
      };
    case "agent": {
      const { from, to, phase, reason = "", ms = null } = message;
      if (phase === "started") return append(snapshot, { kind: "handoff", key: key(), from, to, reason, ms });
      const isOpen = (entry: Entry): entry is Handoff => entry.kind === "handoff" && entry.ms === null;
      return { ...(replace(snapshot, isOpen, (entry) => ({ ...entry, ms })) ?? snapshot), speaker: speaker(snapshot, { ...message, agent: to }) };
    }
    case "function_call":
    case "function_result":
    case "function_cancelled":
    case "async_task_started":
    case "async_task_complete":
    case "task_progress":
    case "approval_requested":
    case "approval_ended":
    case "run_started":
    case "run_step":
    case "run_waiting":
    case "run_ended":
      return receiveWork(snapshot, message, now);
    case "error": {
      const { message: text, code, retryable, field, limit } = message;
      const action = retryable ? "Try again in a moment." : "See what the message names, then start again.";
      return { ...snapshot, error: { code, message: text, retryable, action, ...(field === undefined ? {} : { field }), ...(limit === undefined ? {} : { limit }) } };
    }
    case "session_ended":
      return { ...snapshot, state: "ended", reason: "" };
    case "restored":
      // What another worker had only begun to hear or to say, this one says anew.
      return message.cause === "provider" ? snapshot : { ...snapshot, conversation: settled(snapshot) };
    case "provider":
    case "go_away":
    case "start_tour":
    case "output":
    case "notice":
      return snapshot;
  }
}

/** The conversation without lines that were still being said. */
function settled(snapshot: Snapshot): Entry[] {
  return snapshot.conversation.filter((entry) => entry.kind !== "said" || entry.final);
}

/** A turn that no model took part in leaves the figures as they are. */
function spent({ usage, spent }: Snapshot, turn: Usage = NONE): Pick<Snapshot, "usage" | "spent"> {
  const { input_tokens: input, output_tokens: output, microdollars: cost = 0 } = turn;
  if (input + output === 0) return { usage, spent };
  return {
    usage: turn,
    spent: { input_tokens: spent.input_tokens + input, output_tokens: spent.output_tokens + output, microdollars: (spent.microdollars ?? 0) + cost },
  };
}

/** The conversation as the server told it at once; what was typed and is still on its way stays below it. */
function recapped(snapshot: Snapshot, { transcript }: Recap): Entry[] {
  const said = transcript.map(({ role, text, turn, seq, unheard = "", interrupted = false, agent = "" }, i) =>
    line(role, { text, interrupted, cut: interrupted && turn > 0 && transcript.slice(i + 1).some((next) => next.role === role && next.turn === turn), unheard, turn, seq, agent }),
  );
  const pending = snapshot.conversation.filter((entry) => entry.kind === "said" && entry.typed && entry.seq === null);
  return [...said, ...pending].slice(-MAX_ENTRIES);
}

/** The snapshot while the socket is gone and the session waits. */
export function reconnecting(snapshot: Snapshot, interruption: Interruption): Snapshot {
  return { ...snapshot, connection: "reconnecting", state: "reconnecting", reason: interruption.reason, interruption, notice: null, error: null };
}

/** The snapshot after the socket closed for good: nothing is running any more. A call that never came about leaves the agent idle. */
export function disconnected(snapshot: Snapshot, closed: Closed, error: AgentErrorFields | null, state: AgentState = "ended"): Snapshot {
  const conversation = snapshot.conversation.map((entry) => {
    if (entry.kind === "said") return entry.final ? entry : { ...entry, final: true };
    // What goes on in another window may be taken back from there.
    return entry.kind === "handoff" || (state === "elsewhere" && entry.kind !== "call") ? entry : over(entry);
  });
  return {
    ...snapshot,
    conversation,
    connection: "closed",
    state: snapshot.sessionId === null ? "idle" : state,
    reason: "",
    interruption: null,
    microphone: "off",
    closed,
    error: error ?? snapshot.error,
    pushToTalk: false,
    audioBlocked: false,
  };
}
