/** One session: what was said, and every fact of it on one clock. Owns the place in time, which is in the address as `t` in ms. */
import { type ReactElement, useMemo, useState } from "react";
import { Icon } from "../icons";
import { Link } from "../router";
import { duration, STATE_WORDS } from "../words";
import { isLive } from "./api";
import { Details } from "./details";
import { useSession } from "./follow";
import { lastBefore, layout, stateAt } from "./layout";
import { TimelineView } from "./timeline";
import { Transcript } from "./transcript";

function fromAddress(): number | null {
  const given = new URLSearchParams(location.search).get("t");
  const t = Number(given);
  return given === null || !Number.isFinite(t) ? null : Math.max(0, t);
}

interface Place {
  at: number;
  selected?: number | undefined;
}

export function SessionRoom({ id }: { id: string }): ReactElement {
  const { session, events, error, complete } = useSession(id);
  const timeline = useMemo(() => layout(events), [events]);
  const [place, setPlace] = useState<Place | null>(() => {
    const at = fromAddress();
    return at === null ? null : { at };
  });
  // Until the person chooses a moment, the moment is the newest.
  const at = Math.min(place?.at ?? timeline.end, timeline.end);
  const selected = place?.selected ?? lastBefore(timeline.times, at);
  const move = (time: number, index?: number): void => {
    setPlace({ at: time, selected: index });
    history.replaceState(null, "", `${location.pathname}?t=${Math.round(time)}`);
  };
  const select = (index: number): void => move(timeline.times[index] ?? 0, index);
  const live = session !== null && isLive(session);
  const state = stateAt(events, selected);
  return (
    <main className="session">
      <Link to="/sessions" className="back"><Icon name="back" size={18} />Sessions</Link>
      <div className="session-head">
        <h1>Session {id.slice(0, 8)}</h1>
        {session !== null && (
          <p className="session-facts">
            <span className="badge" data-live={live}>{live ? "Live" : "Ended"}</span>
            <span>{session.mode}</span>
            <span>{new Date(session.started_at_ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}</span>
            <span>{session.turns === 1 ? "1 turn" : `${session.turns} turns`}</span>
            <span>{duration(timeline.end)}</span>
            <span>{events.length} events</span>
            <span className="session-whole-id">{id}</span>
          </p>
        )}
      </div>
      {error !== null && (
        <div className="notice" role="alert">
          <Icon name="warning" size={18} />
          <div>
            <strong>{error.status === 404 ? "There is no such session." : error.message}</strong>
            <p>{error.status === 404 ? "It may be older than the log keeps. See the list for those that are there." : "This page looks again every second."}</p>
          </div>
        </div>
      )}
      {session === null && error === null && <p className="empty-line" role="status">Reading the log…</p>}
      {events.length > 0 && (
        <>
          <p className="moment" role="status">
            <span>
              At <b>{duration(at)}</b>: {((STATE_WORDS as Record<string, string>)[state] ?? state).toLowerCase()}
              {live && !complete && place === null && " · following live"}
            </span>
            {live && place !== null && <button type="button" className="button" onClick={() => setPlace(null)}>Follow live</button>}
          </p>
          <TimelineView events={events} timeline={timeline} playhead={at} selected={selected} onMove={move} />
          <div className="session-panels">
            <Transcript events={events} times={timeline.times} selected={selected} onSelect={select} />
            <Details event={events[selected]} at={timeline.times[selected] ?? 0} index={selected} count={events.length} onStep={(by) => select(Math.max(0, Math.min(events.length - 1, selected + by)))} />
          </div>
        </>
      )}
    </main>
  );
}
