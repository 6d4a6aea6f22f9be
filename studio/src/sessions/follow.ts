/** One session's log, read to its end and followed each second while the session is live. Owns the polling and its bound. */
import { useEffect, useState } from "react";
import { fetchEvents, fetchSession, isLive, type LogEvent, ReadError, type SessionSummary } from "./api";

const AGAIN_MS = 1000;
/** A session of about an hour; what comes after is in the log, and read by the command line. */
export const MAX_EVENTS = 20_000;

export interface Followed {
  session: SessionSummary | null;
  events: LogEvent[];
  error: ReadError | null;
  complete: boolean;
}

async function readOn(id: string, before: LogEvent[], signal: AbortSignal): Promise<LogEvent[]> {
  let events = before;
  for (let more = true; more && events.length < MAX_EVENTS; ) {
    const page = await fetchEvents(id, events.at(-1)?.seq ?? 0, signal);
    if (page.events.length > 0) events = [...events, ...page.events];
    more = page.more && page.events.length > 0;
  }
  return events;
}

export function useSession(id: string): Followed {
  const [followed, setFollowed] = useState<Followed>({ session: null, events: [], error: null, complete: false });
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let events: LogEvent[] = [];
    const round = async (): Promise<void> => {
      let again = true;
      try {
        const session = await fetchSession(id, signal);
        events = await readOn(id, events, signal);
        again = isLive(session) && events.length < MAX_EVENTS;
        if (!signal.aborted) setFollowed({ session, events, error: null, complete: !again });
      } catch (cause) {
        if (!(cause instanceof ReadError)) return;
        again = cause.status !== 404;
        if (!signal.aborted) setFollowed((before) => ({ ...before, error: cause }));
      }
      if (again && !signal.aborted) timer = setTimeout(() => void round(), AGAIN_MS);
    };
    void round();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [id]);
  return followed;
}
