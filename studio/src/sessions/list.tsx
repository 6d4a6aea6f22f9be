/** Every session, live ones on top, with a search. */
import { type ReactElement, useEffect, useState } from "react";
import { Link } from "wouter";
import { Icon } from "../icons";
import { agentName, ago, STATE_WORDS } from "../words";
import { fetchSessions, isLive, nested, ReadError, type SessionSummary, willPass } from "./api";

const AGAIN_MS = 3000;

interface Listed {
  sessions: SessionSummary[];
  more: number | null;
  error: ReadError | null;
  loaded: boolean;
  now: number;
}

function words(state: string): string {
  return (STATE_WORDS as Record<string, string>)[state] ?? state;
}

function Row({ session, now }: { session: SessionSummary; now: number }): ReactElement {
  const live = isLive(session);
  return (
    <li>
      <Link to={`/sessions/${encodeURIComponent(session.id)}`} className="session-row" data-child={session.parent !== undefined}>
        <span className="dot" data-live={live} aria-hidden="true" />
        <span className="session-id">{session.id}</span>
        <span className="session-mode">{session.agent === undefined ? session.mode : agentName(session.agent)}</span>
        <span>{session.turns === 1 ? "1 turn" : `${session.turns} turns`}</span>
        <span>{live ? words(session.state) : (session.ended_reason ?? "ended").replaceAll("_", " ")}</span>
        <time dateTime={new Date(session.started_at_ms).toISOString()}>{ago(session.started_at_ms, now)}</time>
      </Link>
    </li>
  );
}

export function SessionList(): ReactElement {
  const [query, setQuery] = useState("");
  const [listed, setListed] = useState<Listed>({ sessions: [], more: null, error: null, loaded: false, now: Date.now() });
  const [older, setOlder] = useState<SessionSummary[]>([]);
  useEffect(() => {
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const round = async (): Promise<void> => {
      let again = true;
      try {
        const { sessions, next_before } = await fetchSessions(null, leaving.signal);
        setListed((before) => ({ sessions, more: before.loaded ? before.more : (next_before ?? null), error: null, loaded: true, now: Date.now() }));
      } catch (cause) {
        if (!(cause instanceof ReadError)) return;
        setListed((before) => ({ ...before, error: cause, loaded: true }));
        again = willPass(cause);
      }
      if (again && !leaving.signal.aborted) timer = setTimeout(() => void round(), AGAIN_MS);
    };
    void round();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, []);
  const loadOlder = async (): Promise<void> => {
    try {
      const page = await fetchSessions(listed.more, new AbortController().signal);
      setOlder((before) => [...before, ...page.sessions]);
      setListed((before) => ({ ...before, more: page.next_before ?? null }));
    } catch (cause) {
      if (cause instanceof ReadError) setListed((before) => ({ ...before, error: cause }));
    }
  };
  const recent = new Set(listed.sessions.map(({ id }) => id));
  const all = [...listed.sessions, ...older.filter(({ id }) => !recent.has(id))];
  const wanted = query.trim().toLowerCase();
  const found = all.filter(({ id, mode, agent, state, ended_reason }) => `${id} ${mode} ${agent ?? ""} ${state} ${ended_reason ?? ""}`.toLowerCase().includes(wanted));
  const groups: [string, SessionSummary[]][] = [
    ["Live now", found.filter(isLive)],
    ["Ended", found.filter((session) => !isLive(session))],
  ];
  return (
    <main className="sessions">
      <div className="sessions-head">
        <h1>Sessions</h1>
        <label className="search">
          <Icon name="search" size={18} />
          <input type="search" value={query} onChange={(event) => setQuery(event.target.value)} placeholder="Search by id, mode, agent or state" aria-label="Search sessions" />
        </label>
      </div>
      {listed.error !== null && (
        <div className="notice" role="alert">
          <Icon name="warning" size={18} />
          <div><strong>{listed.error.message}</strong>{willPass(listed.error) && <p>This list looks again every 3 seconds.</p>}</div>
        </div>
      )}
      {!listed.loaded && <p className="empty-line" role="status">Reading the log…</p>}
      {listed.loaded && listed.error === null && all.length === 0 && (
        <div className="empty">
          <h2>No session yet</h2>
          <p>Every call is listed here with all of its events.</p>
          <Link to="/" className="button">Start talking</Link>
        </div>
      )}
      {all.length > 0 && found.length === 0 && <p className="empty-line" role="status">No session matches “{query}”.</p>}
      {groups.map(([title, sessions]) =>
        sessions.length === 0 ? null : (
          <section key={title} aria-label={title}>
            <h2>{title}</h2>
            <ul className="session-rows">{nested(sessions).map((session) => <Row key={session.id} session={session} now={listed.now} />)}</ul>
          </section>
        ),
      )}
      {listed.more !== null && <button type="button" className="button" onClick={() => void loadOlder()}>Show older sessions</button>}
    </main>
  );
}
