/** Reading the log over HTTP (docs/protocol.md, section 7). Owns the shapes as this app reads them. */
import { ask } from "../http";

export { complaint, isRefused, ReadError, willPass } from "../http";

export interface SessionSummary {
  id: string;
  mode: string;
  /** The agent or pipeline that was asked for. */
  agent?: string;
  started_at_ms: number;
  state: string;
  turns: number;
  ended_reason?: string;
  /** The session whose function asked for this one. */
  parent?: string;
}

/** Sessions with those that their functions asked for right below them, in the order in which they began. */
export function nested(sessions: readonly SessionSummary[]): SessionSummary[] {
  const known = new Set(sessions.map(({ id }) => id));
  const isBelow = ({ parent }: SessionSummary): boolean => parent !== undefined && known.has(parent);
  const below = (id: string): SessionSummary[] => sessions.filter((session) => isBelow(session) && session.parent === id).reverse();
  return sessions.filter((session) => !isBelow(session)).flatMap((session) => [session, ...below(session.id)]);
}

export interface LogEvent {
  seq: number;
  id: string;
  type: string;
  v: number;
  writer: string;
  visibility: string;
  /** Microseconds of the Unix clock. */
  ts: number;
  cause: unknown;
  data: Record<string, unknown>;
}

export const PAGE = 256;
const FACTS_PAGE = 1000;

/** The least and the greatest sample, of 127, in equal parts of a stretch of a session; null where there was no audio. */
export interface Waveform {
  recorded: boolean;
  source: "record" | "live" | "none";
  from_ms: number;
  to_ms: number;
  complete: boolean;
  low: (number | null)[];
  high: (number | null)[];
}

export type Channel = "in" | "out";

export interface Reply {
  generation: number;
  turn: number;
  text: string;
  unsplit: string;
  closed: boolean;
  playing: boolean;
  made_ms: number;
  played_ms: number;
  calls: { call_id: string; name: string; browser: boolean }[];
}

/** What the voice service knew at a moment. Times of timers and effects in µs of the Unix clock. */
export interface SessionState {
  at: number;
  inputs: number;
  state: string;
  worker: string;
  term: number;
  turns: number;
  client_away_since: number | null;
  history: { role: string; text: string; calls: string[] }[];
  history_count: number;
  speech: { from_ms: number; to_ms: number | null; text: string | null; complete: boolean } | null;
  reply: Reply | null;
  cut: Reply | null;
  notices: string[];
  timers: { name: string; due: number }[];
  effects: { id: number; kind: string; since: number }[];
}

function read<Body>(path: string, signal: AbortSignal): Promise<Body> {
  return ask(path, { signal });
}

export function fetchSessions(before: number | null, signal: AbortSignal): Promise<{ sessions: SessionSummary[]; next_before?: number }> {
  return read(`/api/sessions?limit=50${before === null ? "" : `&before=${before}`}`, signal);
}

/** Events with the journals, which are for administrators. */
export function fetchEvents(id: string, after: number, signal: AbortSignal): Promise<{ events: LogEvent[]; more: boolean }> {
  return read(`${session(id)}/events?after=${after}&limit=${PAGE}&journals=true`, signal);
}

/** Events without the journals. */
export function fetchFacts(id: string, after: number, signal: AbortSignal): Promise<{ events: LogEvent[]; more: boolean; next_after?: number }> {
  return read(`${session(id)}/events?after=${after}&limit=${FACTS_PAGE}&journals=false`, signal);
}

export function fetchState(id: string, at: number, signal: AbortSignal): Promise<SessionState> {
  return read(`${session(id)}/state?at=${Math.round(at)}`, signal);
}

export function fetchWaveform(id: string, channel: Channel, bins: number, view: { from: number; to: number } | null, signal: AbortSignal): Promise<Waveform> {
  const stretch = view === null ? "" : `&from_ms=${Math.floor(view.from)}&to_ms=${Math.ceil(view.to)}`;
  return read(`${session(id)}/waveform?channel=${channel}&bins=${bins}${stretch}`, signal);
}

function session(id: string): string {
  return `/api/sessions/${encodeURIComponent(id)}`;
}

export function isLive(session: Pick<SessionSummary, "state">): boolean {
  return session.state !== "ended";
}

/** A stretch in which somebody waited and nothing was heard, in ms since the session was requested. */
export interface Silence {
  from_ms: number;
  to_ms: number;
  cause: string;
  why: string;
  todo: string;
  open: boolean;
}

export async function readSilences(id: string): Promise<readonly Silence[]> {
  return (await ask<{ silences: Silence[] }>(`/api/sessions/${id}/silences`)).silences;
}
