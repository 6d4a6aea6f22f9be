/**
 * When to try again after a lost socket: full jitter, so that the pages of a gateway that died do not all come back at once.
 * Owns the arithmetic of one interruption, from the loss to giving up. Pure: the clock and the dice are given.
 */

/** The first pause is shorter than this; each one after may be twice as long, up to the cap. */
export const BASE_MS = 250;
export const CAP_MS = 5_000;
/** A process that died is back within seconds: the first tries wait no longer than this, so that the call is soon there again. */
export const PROMPT_MS = 500;
export const PROMPT_TRIES = 30;
/** The shortest pause where the gateway said "later". */
export const LATER_MS = 2_000;
/** How long a gateway keeps a session for its client, unless it was set up otherwise (`VOXBRIDGE_RESUME_WINDOW_S`). */
export const WINDOW_MS = 120_000;
/** A connection that held this long was a good one: the next loss begins again with short pauses. */
export const STABLE_MS = 2_000;

/** Why the socket is not there, and what is being done about it. Times in ms of one clock that does not jump. */
export interface Interruption {
  /** In words for a person. */
  reason: string;
  /** Tries since the socket was lost, the one that is due included. */
  attempt: number;
  since: number;
  /** When the next try is due; null while one is on its way. */
  nextTryAt: number | null;
  /** The last try is made now. */
  until: number;
}

/** ms before try number `attempt`, from 0; `random` is in [0, 1). */
export function pause(attempt: number, later: boolean, random: number): number {
  const wait = random * Math.min(attempt < PROMPT_TRIES ? PROMPT_MS : CAP_MS, BASE_MS * 2 ** Math.min(attempt, 16));
  return Math.round(later ? LATER_MS + wait : wait);
}

export interface Loss {
  reason: string;
  /** The gateway asked for patience (close code 1013). */
  later: boolean;
  now: number;
  random: number;
  windowMs: number;
  /** Tries that a connection made which did not hold; they count on. */
  attempts: number;
}

/** The interruption after a loss, or after a try that failed; null when the session can no longer be there. */
export function interrupted(before: Interruption | null, loss: Loss): Interruption | null {
  const { reason, later, now, random } = loss;
  const since = before?.since ?? now;
  const until = before?.until ?? now + loss.windowMs;
  if (now >= until) return null;
  const attempt = before?.attempt ?? loss.attempts;
  return { reason, attempt: attempt + 1, since, nextTryAt: Math.min(now + pause(attempt, later, random), until), until };
}
