/** Reading the log over HTTP (docs/protocol.md, section 7). Owns the shapes as this app reads them. */

export interface SessionSummary {
  id: string;
  mode: string;
  started_at_ms: number;
  state: string;
  turns: number;
  ended_reason?: string;
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

/** The gateway said no, or nothing; `status` is 0 where it did not answer. */
export class ReadError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function read<Body>(path: string, signal: AbortSignal): Promise<Body> {
  let answer: Response;
  try {
    answer = await fetch(path, { signal, headers: { accept: "application/json" } });
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new ReadError(0, "The gateway does not answer.");
  }
  if (!answer.ok) {
    const body = (await answer.json().catch(() => null)) as { message?: string } | null;
    throw new ReadError(answer.status, body?.message ?? `The gateway answered ${answer.status}.`);
  }
  return (await answer.json()) as Body;
}

export function fetchSessions(before: number | null, signal: AbortSignal): Promise<{ sessions: SessionSummary[]; next_before?: number }> {
  return read(`/api/sessions?limit=50${before === null ? "" : `&before=${before}`}`, signal);
}

export function fetchSession(id: string, signal: AbortSignal): Promise<SessionSummary> {
  return read(`/api/sessions/${encodeURIComponent(id)}`, signal);
}

export function fetchEvents(id: string, after: number, signal: AbortSignal): Promise<{ events: LogEvent[]; more: boolean }> {
  return read(`/api/sessions/${encodeURIComponent(id)}/events?after=${after}&limit=${PAGE}`, signal);
}

export function isLive(session: SessionSummary): boolean {
  return session.state !== "ended";
}
