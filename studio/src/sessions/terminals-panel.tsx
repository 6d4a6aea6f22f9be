/** What the terminals showed at the moment under the playhead. Owns when it is asked: of those that are unfolded, once the playhead rests. */
import { type ReactElement, useEffect, useState } from "react";
import { ask, complaint, ReadError, useLoaded } from "../http";
import type { LogEvent } from "./api";

const SETTLE_MS = 90;
/** Terminals that are unfolded at first. */
const UNFOLDED = 2;

interface Lived {
  life: string;
  name: string;
  started_ms: number;
  closed_ms?: number;
}

interface Shown {
  at_ms: number;
  title: string;
  text: string;
}

/** Terminals are reached by the calls of the installation's own account alone: a token of another one may not read them. */
export function reachesTerminals(events: readonly LogEvent[]): boolean {
  const { account } = events.find(({ type }) => type === "session.requested")?.data ?? {};
  return (account ?? "local") === "local";
}

/** `at` in ms since 1970; others may be started while the call is `live`. Nothing is drawn where no terminal was there at that time. */
export function TerminalsPanel({ at, live }: { at: number; live: boolean }): ReactElement | null {
  const { value } = useLoaded<{ lives: Lived[] }>("/api/terminals/lives?limit=500", live);
  const there = (value?.lives ?? []).filter(({ started_ms, closed_ms }) => started_ms <= at && at < (closed_ms ?? Infinity)).reverse();
  if (there.length === 0) return null;
  return (
    <section className="panel" aria-label="Terminals">
      <h2>Terminals at this moment</h2>
      {there.map((lived, i) => <Screen key={lived.life} lived={lived} at={at} unfolded={i < UNFOLDED} />)}
    </section>
  );
}

function Screen({ lived, at, unfolded }: { lived: Lived; at: number; unfolded: boolean }): ReactElement {
  const [open, setOpen] = useState(unfolded);
  const [{ shown, error }, setFound] = useState<{ shown: Shown | null; error: ReadError | null }>({ shown: null, error: null });
  useEffect(() => {
    if (!open) return;
    const leaving = new AbortController();
    const timer = setTimeout(() => {
      ask<Shown>(`/api/terminals/lives/${lived.life}/screen?at_ms=${Math.round(at)}`, { signal: leaving.signal })
        .then((found) => setFound({ shown: found, error: null }))
        .catch((cause: unknown) => {
          if (cause instanceof ReadError) setFound({ shown: null, error: cause });
        });
    }, SETTLE_MS);
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [lived.life, at, open]);
  return (
    <details className="past-screen" open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{lived.name}{shown !== null && shown.title !== "" && <span className="quiet-text"> {shown.title}</span>}</summary>
      {error !== null && <p className="quiet-text" role="status">{complaint(error, "read terminals")}</p>}
      {shown !== null && <pre tabIndex={0} aria-label={`Screen of ${lived.name}`}>{shown.text === "" ? "(empty)" : shown.text}</pre>}
    </details>
  );
}
