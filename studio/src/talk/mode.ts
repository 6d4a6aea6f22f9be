/** The mode of a bridge, read off a conversation. Pure. */
import type { Entry } from "voxbridge/react";

export type Mode = "ai" | "chat" | "key";

/** The function by which the mode changes. */
export const SWITCH = "switch_mode";

export const MODES: Record<Mode, { name: string; about: string }> = {
  ai: { name: "AI", about: "The officer takes your orders." },
  chat: { name: "Chat", about: "What you say is typed into the active terminal." },
  key: { name: "Key", about: "Name a key, and it is pressed in the active terminal." },
};

/** What the newest call of `switch_mode` says; with a handoff the next agent begins anew. */
export function modeOf(conversation: readonly Entry[]): Mode {
  const last = conversation.findLast((entry) => entry.kind === "handoff" || (entry.kind === "call" && entry.name === SWITCH && entry.status === "done"));
  if (last?.kind !== "call" || typeof last.result !== "object" || last.result === null) return "ai";
  const { mode } = last.result as { mode?: string };
  return mode === "chat" || mode === "key" ? mode : "ai";
}
