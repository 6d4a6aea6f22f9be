/** The sentence that tells a person what became of an interruption. Owns the words; pure. */
import { HELD_MS } from "../socket/outbox";
import type { ServerMessage } from "../socket/protocol";

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

const KNOWS = { handle: "goes on where it was", reseeded: "was told the conversation again", fresh: "begins afresh, with at most a summary of what was said" };

export function restored({ how, cause, lost }: Extract<ServerMessage, { type: "restored" }>): string {
  const model = cause === "provider";
  const what = model ? "The model was connected again" : "The voice worker was replaced";
  if (how === "fresh" || (model && lost.length === 0)) return `${what}; ${model ? "it" : "the model"} ${KNOWS[how]}.`;
  return lost.length === 0 ? `${what}; you lost nothing.` : `${what}. Lost: ${lost.join("; ").replace(/\.$/, "")}.`;
}
