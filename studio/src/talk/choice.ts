/** Whom the next call is for. Owns the choice, kept in this browser; a wrong one that was kept counts as none. */
import { useSyncExternalStore } from "react";
import type { Mode, VoiceAgentOptions } from "voxbridge/react";
import { agentName } from "../words";

const KEY = "voxbridge.choice";
const listeners = new Set<() => void>();
let known: { kept: string | null; choice: Choice } | null = null;

export interface Choice {
  mode: Mode;
  /** Empty strings stand for what is usual. An agent counts before mode and model. */
  agent: string;
  voice: string;
  model: string;
}

export interface ModeWords {
  mode: Mode;
  name: string;
  what: string;
  /** What it thinks with unless another model is named (voxbridge/services/voice/core/capabilities.py). */
  model: string;
  /** Whose voices it has: a list of the gateway's, or any name. */
  voices: "local" | "gemini" | "any" | "none";
}

export const MODES: readonly ModeWords[] = [
  { mode: "local", name: "Local models", what: "Listens, thinks and speaks on this installation.", model: "local", voices: "local" },
  { mode: "gemini", name: "Gemini", what: "One model that hears and speaks, by Google.", model: "gemini-3.8-live", voices: "gemini" },
  { mode: "openai", name: "OpenAI", what: "One model that hears and speaks, by OpenAI.", model: "gpt-realtime-2.1", voices: "any" },
  { mode: "claude", name: "Claude", what: "Thinks at Anthropic; hears and speaks here.", model: "claude-sonnet-5", voices: "local" },
  { mode: "echo", name: "Echo", what: "Sends your voice back: a test of the line.", model: "", voices: "none" },
];

const USUAL: Choice = { mode: "local", agent: "", voice: "", model: "" };

export function ofMode(mode: Mode): Choice {
  return { ...USUAL, mode };
}

export function ofAgent(agent: string): Choice {
  return { ...USUAL, agent };
}

/** The choice that is kept: the same object until it changes. */
export function remembered(): Choice {
  const kept = localStorage.getItem(KEY);
  if (known === null || known.kept !== kept) known = { kept, choice: read(kept) };
  return known.choice;
}

function read(text: string | null): Choice {
  try {
    const kept = JSON.parse(text ?? "{}") as Record<string, unknown>;
    const part = (name: string): string => (typeof kept[name] === "string" ? kept[name].slice(0, 64) : "");
    const mode = MODES.find((one) => one.mode === kept["mode"])?.mode ?? USUAL.mode;
    return { mode, agent: part("agent"), voice: part("voice"), model: part("model") };
  } catch {
    return USUAL;
  }
}

export function remember(choice: Choice): void {
  localStorage.setItem(KEY, JSON.stringify(choice));
  for (const listener of listeners) listener();
}

/** The choice, also when the agent changes it. */
export function useChoice(): Choice {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, remembered);
}

/** The choice in two or three words. */
export function named({ mode, agent, voice }: Choice): string {
  if (agent !== "") return agentName(agent);
  const name = MODES.find((one) => one.mode === mode)?.name ?? mode;
  return voice === "" ? name : `${name}, ${voice}`;
}

/** Where the person's voice goes, before it does. */
export function wayOf({ mode, agent }: Choice): string {
  if (agent !== "") return "Your voice goes to this Voxbridge, and from there to the models of the agent you talk to.";
  if (mode === "gemini" || mode === "openai") return `Your voice goes through this Voxbridge to ${mode === "gemini" ? "Google" : "OpenAI"}.`;
  if (mode === "claude") return "Your voice goes to this Voxbridge and no further; what you say goes to Anthropic as text.";
  return "Your voice goes to this Voxbridge and nowhere else.";
}

/** The options of a call, each of them: they replace those of the call before. Who is spoken to by voice answers by voice. */
export function optionsOf({ mode, agent, voice, model }: Choice, spoken: boolean): VoiceAgentOptions {
  if (agent !== "") return { mode: "local", agent, voice: "", model: "", output: "" };
  return { mode, agent: "", voice, model, output: mode === "claude" && spoken ? "audio" : "" };
}
