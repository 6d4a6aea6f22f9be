/** The mode of a bridge, read off a conversation. Pure. */
import type { Entry, Said, Snapshot } from "voxbridge/react";

export type Mode = "ai" | "chat" | "key";

/** The function by which the mode changes. */
export const SWITCH = "switch_mode";

export const MODES: Record<Mode, { name: string; about: string }> = {
  ai: { name: "AI", about: "The officer takes your orders." },
  chat: { name: "Chat", about: "What you say is typed into the active terminal." },
  key: { name: "Key", about: "Name a key, and it is pressed in the active terminal." },
};

/** The mode, and whether what is said is sent by itself. */
export interface Steered {
  mode: Mode;
  auto: boolean;
}

/** What the newest call of `switch_mode` says; with a handoff the next agent begins anew. */
export function steered(conversation: readonly Entry[]): Steered {
  const last = conversation.findLast((entry) => entry.kind === "handoff" || (entry.kind === "call" && entry.name === SWITCH && entry.status === "done"));
  if (last?.kind !== "call" || typeof last.result !== "object" || last.result === null) return { mode: "ai", auto: true };
  const { mode, auto } = last.result as { mode?: string; auto?: boolean };
  return { mode: mode === "chat" || mode === "key" ? mode : "ai", auto: auto !== false };
}

/** What was said and is to be sent by hand: the words of an utterance that is over, and that nobody took. */
export function draftOf({ conversation, state }: Pick<Snapshot, "conversation" | "state">): Said | null {
  if (state !== "listening" || steered(conversation).auto) return null;
  return conversation.findLast((entry): entry is Said => entry.kind === "said" && entry.role === "user" && !entry.final && !entry.typed && entry.text.trim() !== "") ?? null;
}
