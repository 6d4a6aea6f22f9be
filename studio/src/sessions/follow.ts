/** One session's facts, read to their end and followed each second while the session is live. Owns the polling and its bound. */
import { useEffect, useState } from "react";
import { fetchFacts, type LogEvent, ReadError, willPass } from "./api";

const AGAIN_MS = 1000;
/** A session of several hours; what comes after is in the log, and read by the command line. */
export const MAX_EVENTS = 50_000;

export interface Followed {
  events: LogEvent[];
  error: ReadError | null;
  loaded: boolean;
  /** No more will come, or no more is read. */
  complete: boolean;
  /** Milliseconds since the newest event came: a live session goes on without one. */
  since: number;
}

export function useFacts(id: string): Followed {
  const [followed, setFollowed] = useState<Followed>({ events: [], error: null, loaded: false, complete: false, since: 0 });
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let events: LogEvent[] = [];
    let after = 0;
    let newest = performance.now();
    const readOn = async (): Promise<void> => {
      for (let more = true; more && events.length < MAX_EVENTS; ) {
        const page = await fetchFacts(id, after, signal);
        if (page.events.length > 0) {
          events = [...events, ...page.events];
          newest = performance.now();
        }
        after = page.next_after ?? page.events.at(-1)?.seq ?? after;
        more = page.more;
      }
    };
    const round = async (): Promise<void> => {
      let again = true;
      try {
        await readOn();
        again = !hasEnded(events) && events.length < MAX_EVENTS;
        if (!signal.aborted) setFollowed({ events, error: null, loaded: true, complete: !again, since: again ? performance.now() - newest : 0 });
      } catch (cause) {
        if (!(cause instanceof ReadError)) return;
        again = willPass(cause);
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

/** Whether nothing more will happen: it ended, or it was erased. */
export function hasEnded(events: readonly LogEvent[]): boolean {
  return events.some(({ type }) => type === "session.ended" || type === "session.erased");
}
