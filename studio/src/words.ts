/** The words of the interface for states, times and functions. Owns no state. */
import type { AgentState, Snapshot, Stamp } from "voxbridge/react";

export const STATE_WORDS: Record<AgentState, string> = {
  idle: "Ready",
  connecting: "Connecting",
  listening: "Listening",
  user_speaking: "Hearing you",
  thinking: "Thinking",
  calling_tool: "Using a tool",
  speaking: "Speaking",
  restoring: "Restoring",
  reconnecting: "Reconnecting",
  elsewhere: "In another window",
  ended: "Call ended",
};

/** One sentence under the word: what the person can do. */
export function hint({ state, reason, microphone, closed, conversation }: Snapshot): string {
  if (state === "reconnecting") return reason;
  if (state === "elsewhere") return "The call goes on there. You can take it back here.";
  if (microphone === "asking") return "Your browser is asking for the microphone.";
  if (state === "ended") return closed === null || closed.code === 0 || (closed.ended && closed.code === 1000) ? "Start again whenever you like." : closed.reason;
  const keyboard = matchMedia("(hover: hover)").matches;
  if (state === "listening" && reason !== "") return sentence(reason);
  if (state === "listening" && microphone === "muted") return keyboard ? "You are muted. Hold Space to talk, press M to unmute." : "You are muted.";
  if (state === "listening" && microphone === "off") return "Type your message.";
  if (state === "listening") return "Say something.";
  if (state === "speaking" && microphone === "on") return keyboard ? "Speak to interrupt, or press Esc." : "Speak to interrupt.";
  if (state === "speaking" && keyboard) return "Press Esc to stop.";
  if (state === "restoring" && reason === "") return "The voice worker is being replaced.";
  if (state === "calling_tool" && reason === "") return step(conversation);
  return reason === "" ? "" : sentence(reason);
}

/** The function that runs, and which one it is since the person spoke last: an order may take several. */
export function step(conversation: Snapshot["conversation"]): string {
  const from = conversation.findLastIndex((entry) => entry.kind === "said" && entry.role === "user");
  const calls = conversation.slice(from + 1).filter((entry) => entry.kind === "call");
  const running = calls.findLast((entry) => entry.status === "running");
  if (running === undefined) return "";
  const number = calls.indexOf(running) + 1;
  return number === 1 ? `${functionName(running.name)}.` : `Step ${number}: ${functionName(running.name)}.`;
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`;
}

/** A stage of a turn, named after the stamp that ends it. */
export const STAGE_WORDS: Record<Stamp, string> = {
  end_of_turn: "Turn end",
  stt_final: "Speech to text",
  llm_first_token: "First token",
  first_sentence: "First sentence",
  tts_first_audio: "Voice",
  first_audio_sent: "Sent",
  first_audio_heard: "Heard",
};

export function functionName(name: string): string {
  const words = name.replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `front-desk` as a person reads it. */
export function agentName(name: string): string {
  return functionName(name.replaceAll("-", " "));
}

const PROVIDERS: Record<string, string> = {
  gemini: "Gemini",
  openai: "OpenAI",
  anthropic: "Claude",
  assemblyai: "AssemblyAI",
  elevenlabs: "ElevenLabs",
  local: "Local models",
  "": "Local models",
};

export function providerName(provider: string): string {
  return PROVIDERS[provider] ?? provider;
}

/** `gemini:gemini-3.8-live` as a person reads it. */
export function modelName(named: string): string {
  const [provider = "", ...model] = named.split(":");
  return [providerName(provider), ...(model.length === 0 ? [] : [model.join(":")])].join(" · ");
}

/** `, about $0.0123`; nothing where no price is known. */
export function cost(microdollars: number): string {
  if (microdollars === 0) return "";
  return `, about $${(microdollars / 1e6).toLocaleString("en", { minimumFractionDigits: 2, maximumSignificantDigits: microdollars < 1e6 ? 2 : 4 })}`;
}

/** `1,204`. */
export function tokens(count: number): string {
  return count.toLocaleString("en");
}

export function handedOver(from: string, to: string, reason: string, done: boolean): string {
  const words = `${from === "" ? "The agent" : agentName(from)} ${done ? "handed" : "is handing"} over to ${agentName(to)}`;
  return reason === "" ? `${words}.` : `${words}: ${reason.replace(/[.!?]?$/, ".")}`;
}

const RESUMED: Record<string, string> = {
  handle: "It took up the conversation where it was.",
  seed: "It was told the conversation again.",
  summary: "It was told a summary of the conversation.",
  log: "It reads the same history.",
};

/** What an event of agents and their models says, in a sentence; empty for other events. */
export function told(type: string, data: Record<string, unknown>): string {
  const text = (name: string): string => (typeof data[name] === "string" ? data[name] : "");
  const number = (name: string): number => (typeof data[name] === "number" ? data[name] : 0);
  const provider = providerName(text("provider"));
  switch (type) {
    case "handoff.requested":
      return `An operator asked for ${agentName(text("target"))}.`;
    case "handoff.started":
      return handedOver(text("source"), text("target"), text("reason"), false);
    case "handoff.completed":
      return `${agentName(text("target"))} goes on after ${duration(number("ms"))}. ${RESUMED[text("history")] ?? ""}`.trim();
    case "provider.connected":
      return `${provider} is connected. ${RESUMED[text("resumed_by")] ?? ""}`.trim();
    case "provider.lost":
      return `The connection to ${provider} was lost (${number("close_code")}).`;
    case "provider.go_away":
      return `${provider} closes this connection in ${duration(number("time_left_ms"))}; the call moves to a new one.`;
    default:
      return toldOfWork(type, text, number);
  }
}

/** What an event of approvals and runs says. */
function toldOfWork(type: string, text: (name: string) => string, number: (name: string) => number): string {
  switch (type) {
    case "approval.requested":
      return text("question");
    case "approval.ended":
      return `${functionName(text("name"))} was ${text("outcome")}${text("by") === "" ? "" : ` by ${text("by")}`}.`;
    case "run.started":
      return `${text("name")} began its ${number("steps")} steps.`;
    case "run.waiting":
      return text("question") === "" ? `${text("name")} waits.` : text("question");
    case "run.completed":
      return `${text("name")} is done after ${duration(number("ms"))}.`;
    case "run.cancelled":
      return `${text("name")} was cancelled: ${text("reason")}.`;
    default:
      return "";
  }
}

/** Milliseconds for a person: `84 ms`, `1.24 s`, `2 m 05 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
}

export function ago(ms: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(ms).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
