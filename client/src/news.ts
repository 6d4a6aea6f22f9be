/** The sentence that tells a person what became of an interruption. Owns the words; pure. */
import { HELD_MS } from "./outbox";
import type { ServerMessage } from "./protocol";

/** `2.1 s`, `48 s`, `2 min`. */
export function span(ms: number): string {
  if (ms < 10_000) return `${(Math.max(100, ms) / 1000).toFixed(1)} s`;
  if (ms < 90_000) return `${Math.round(ms / 1000)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

export interface Return {
  /** Between the loss of one socket and the answer on the next. */
  gapMs: number;
  /** The page itself is new: nobody was cut off. */
  reloaded: boolean;
  recovered: boolean;
  truncated: boolean;
  /** The microphone was open meanwhile. */
  speaking: boolean;
}

export function returned({ gapMs, reloaded, recovered, truncated, speaking }: Return): string {
  const gap = reloaded ? "You are back in the call" : `You were cut off for ${span(gapMs)}`;
  if (!recovered) return `${gap}; the conversation was fetched anew${truncated ? ", without its beginning" : ""}.`;
  if (speaking && gapMs > HELD_MS) return `${gap}; of what you said meanwhile, the last ${HELD_MS / 1000} s are kept.`;
  return `${gap}; nothing was lost.`;
}

export function restored({ how, lost }: Extract<ServerMessage, { type: "restored" }>): string {
  if (how === "fresh") return "The voice worker was replaced and begins afresh: it does not know what was said before.";
  const [first] = lost;
  if (first === undefined) return "The voice worker was replaced; you lost nothing.";
  return `The voice worker was replaced. Lost: ${lost.join("; ").replace(/\.$/, "")}.`;
}
