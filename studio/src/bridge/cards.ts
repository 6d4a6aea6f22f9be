/** Cards of terminals and frames of their screens, as `/api/terminals` and `/ws/terminals` have them. */

export type Phase = "starting" | "idle" | "working" | "blocked" | "done" | "dead" | "unknown";

export interface State {
  phase: Phase;
  since: number;
  source?: string;
  reason?: string;
  words?: string;
  progress?: number | null;
}

/** The size of a terminal that nobody has resized; its card leaves it out. */
export const COLUMNS = 120;
export const ROWS = 40;

/** Fields that are left out have their usual value: true for `seen`, `COLUMNS` and `ROWS`, otherwise nothing. */
export interface Card {
  id: string;
  name: string;
  workspace: string;
  definition: string;
  title?: string;
  directory?: string;
  state: State;
  columns?: number;
  rows?: number;
  needs_you?: boolean;
  seen?: boolean;
  stale?: boolean;
  ended?: string;
  resumable?: boolean;
  left?: string[];
  held_by?: string;
  held_connection?: string;
  started?: number;
  /** The name under which its log is kept. */
  life?: string;
  /** What its program last said to the officer. */
  said?: { at?: number; by?: string; text?: string };
}

/** A program that can be started, or how to get it. */
export interface Offer {
  definition: { id: string; title: string; kind: string };
  program: string;
  missing?: string;
}

/** What each source says of a state, best first. */
export interface Explained {
  state: State;
  rungs: { source: string; says: string; at: number; counts: boolean; why?: string }[];
}

/** What happened in a terminal, as its log has it. */
export interface Happenings {
  events: { seq: number; at_ms: number; type: string; sentence: string }[];
  more: boolean;
}

/** The frame of a channel: a whole screen, or output from an offset on. */
export interface Frame {
  channel: number;
  keyframe: boolean;
  run: number;
  offset: number;
  data: Uint8Array;
}

const HEAD = 14;

/** Read a binary message; null for one that is too short. */
export function frameOf(message: ArrayBuffer): Frame | null {
  if (message.byteLength < HEAD) return null;
  const view = new DataView(message);
  return {
    channel: view.getUint8(0),
    keyframe: view.getUint8(1) === 1,
    run: view.getUint32(2, true),
    offset: Number(view.getBigUint64(6, true)),
    data: new Uint8Array(message, HEAD),
  };
}

/** What a state says in a few words. */
export function stateWords({ phase, reason }: State): string {
  if (phase === "blocked") return reason === "permission" ? "asks for permission" : reason === "auth" ? "wants a password" : "asks something";
  if (phase === "done") return reason === "error" ? "done, with an error" : "done";
  return { starting: "starting", idle: "idle", working: "working", dead: "ended", unknown: "unknown" }[phase];
}

/** Those that need somebody first, and otherwise as they were started. */
export function inOrder(cards: Card[]): Card[] {
  return [...cards].sort((one, other) => Number(other.needs_you === true) - Number(one.needs_you === true) || (one.started ?? 0) - (other.started ?? 0));
}
