/** One session: what was said, and every fact of it on one clock. Owns the place in time, which is in the address as `t` in ms. */
import { type ReactElement, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { accessToken } from "../access";
import { Icon } from "../icons";
import { Notice } from "../notice";
import { Unlock } from "../unlock";
import { agentName, cost, duration, STATE_WORDS, tokens } from "../words";
import { isRefused, type LogEvent, type ReadError, willPass } from "./api";
import { Details } from "./details";
import { hasEnded, useFacts } from "./follow";
import { type Gap, gaps as gapsOf } from "./gaps";
import { Interruptions } from "./interruptions";
import { lastBefore, layout, stateAt, spentIn, text, type Timeline } from "./layout";
import { Silences } from "./silences";
import { StatePanel } from "./state-panel";
import { reachesTerminals, TerminalsPanel } from "./terminals-panel";
import { TimelineView } from "./timeline";
import { Transcript } from "./transcript";
import { TurnPanel } from "./turn-panel";
import { useWaves } from "./waves";

/** Browsers refuse an address that changes much more often. */
const ADDRESS_MS = 300;

function fromAddress(): number | null {
  const given = new URLSearchParams(location.search).get("t");
  const t = Number(given);
  return given === null || !Number.isFinite(t) ? null : Math.max(0, t);
}

interface Place {
  at: number;
  selected?: number | undefined;
}

/** The place in time, also in the address: at once after a rest, and at most every 300 ms on the way. */
function usePlace(): [place: Place | null, move: (at: number, index?: number) => void, follow: () => void] {
  const [place, setPlace] = useState<Place | null>(() => {
    const at = fromAddress();
    return at === null ? null : { at };
  });
  const waiting = useRef<{ timer: ReturnType<typeof setTimeout> | null; address: string; last: number }>({ timer: null, address: "", last: 0 });
  const write = useCallback((address: string) => {
    const due = waiting.current;
    const put = (): void => {
      due.timer = null;
      due.last = performance.now();
      history.replaceState(null, "", due.address);
    };
    due.address = address;
    if (due.timer === null) due.timer = setTimeout(put, Math.max(0, due.last + ADDRESS_MS - performance.now()));
  }, []);
  useEffect(() => {
    const due = waiting.current;
    return () => {
      if (due.timer !== null) clearTimeout(due.timer);
    };
  }, []);
  const move = useCallback((at: number, selected?: number) => {
    setPlace({ at, selected });
    write(`${location.pathname}?t=${Math.round(at)}`);
  }, [write]);
  const follow = useCallback(() => {
    setPlace(null);
    write(location.pathname);
  }, [write]);
  return [place, move, follow];
}

/** No session has this id, or none can have it. */
function isUnknown({ status }: ReadError): boolean {
  return status === 404 || status === 422;
}

export function SessionRoom({ id }: { id: string }): ReactElement {
  const { events, error, loaded, complete, since } = useFacts(id);
  const timeline = useMemo(() => layout(events, since), [events, since]);
  const gaps = useMemo(() => gapsOf(events, timeline), [events, timeline]);
  const live = loaded && !hasEnded(events);
  const { waves, why } = useWaves(id, live, loaded);
  const [place, move, follow] = usePlace();
  const [asked, setAsked] = useState<number | null>(null);
  // Until the person chooses a moment, the moment is the newest.
  const at = Math.min(place?.at ?? timeline.end, timeline.end);
  const selected = place?.selected ?? lastBefore(timeline.times, at);
  const { times } = timeline;
  const select = useCallback((index: number) => move(times[index] ?? 0, index), [move, times]);
  const ask = (gap: Gap): void => setAsked(gap.index);
  const state = stateAt(events, lastBefore(timeline.times, at));
  const following = live && place === null;
  return (
    <main className="session">
      <Link to="/sessions" className="back"><Icon name="back" size={18} />Sessions</Link>
      <Head id={id} events={events} timeline={timeline} live={live} />
      {isRefused(error) && <Unlock administrator cannot="read this call" />}
      {error !== null && !isRefused(error) && (
        <Notice title={isUnknown(error) ? "There is no such session." : error.message}>
          {isUnknown(error) && <p>It may be older than the log keeps{accessToken() === "" ? "" : ", or not one of this token's account"}. See the list for those that are there.</p>}
          {willPass(error) && <p>This page looks again every second.</p>}
        </Notice>
      )}
      {!loaded && error === null && <p className="empty-line" role="status">Reading the log…</p>}
      {events.length > 0 && (
        <>
          <p className="moment" role="status">
            <span>
              At <b>{duration(at)}</b>: {((STATE_WORDS as Record<string, string>)[state] ?? state).toLowerCase()}
              {following && !complete && " · following live"}
            </span>
            {live && place !== null && <button type="button" className="button" onClick={follow}>Follow live</button>}
          </p>
          <TimelineView id={id} events={events} timeline={timeline} gaps={gaps} waves={waves} playhead={at} selected={selected} following={following} onMove={move} onGap={ask} />
          {why !== "" && <p className="waves-why">{why}</p>}
          <div className="session-panels">
            <div>
              <Transcript events={events} times={times} selected={selected} onSelect={select} />
              <Silences id={id} onGo={(ms) => move(ms)} />
              <Interruptions gaps={gaps} open={asked} onGo={(gap) => { move(gap.from, gap.index); ask(gap); }} />
              <TurnPanel turns={timeline.turns} at={at} />
            </div>
            <div>
              <StatePanel id={id} at={Math.round(timeline.start + at * 1000)} />
              {reachesTerminals(events) && <TerminalsPanel at={timeline.start / 1000 + at} live={live} />}
              <Details
                id={id} event={events[selected]} before={events[selected - 1]?.seq ?? 0} at={times[selected] ?? 0} index={selected} count={events.length}
                onStep={(by) => select(Math.max(0, Math.min(events.length - 1, selected + by)))}
              />
            </div>
          </div>
        </>
      )}
    </main>
  );
}

/** The session whose function asked for this one, and those that its own functions asked for. */
function Family({ events, requested }: { events: readonly LogEvent[]; requested: LogEvent | undefined }): ReactElement | null {
  const child = requested?.data["child"] as { parent?: string } | null | undefined;
  const parent = child?.parent ?? "";
  const children = new Map(events.filter(({ type }) => type === "child.opened").map((event) => [text(event, "child"), text(event, "agent")]));
  if (parent === "" && children.size === 0) return null;
  const link = (id: string, what: string): ReactElement => <Link key={id} to={`/sessions/${encodeURIComponent(id)}`}>{what}</Link>;
  return (
    <p className="session-facts">
      {parent !== "" && (parent.startsWith("@") ? <span>Asked for by a call outside sessions</span> : link(parent, `Asked for by session ${parent.slice(0, 8)}`))}
      {[...children].map(([id, agent]) => link(id, `${agentName(agent)} worked in ${id.slice(0, 8)}`))}
    </p>
  );
}

interface HeadProps {
  id: string;
  events: readonly LogEvent[];
  timeline: Timeline;
  live: boolean;
}

function Head({ id, events, timeline, live }: HeadProps): ReactElement {
  const requested = events.find(({ type }) => type === "session.requested") ?? events[0];
  const turns = events.filter(({ type }) => type === "turn.completed").length;
  const spent = useMemo(() => spentIn(events), [events]);
  return (
    <div className="session-head">
      <h1>Session {id.slice(0, 8)}</h1>
      {requested !== undefined && (
        <p className="session-facts">
          <span className="badge" data-live={live}>{live ? "Live" : "Ended"}</span>
          <span>{text(requested, "agent") === "" ? text(requested, "mode") : agentName(text(requested, "agent"))}</span>
          <span>{new Date(requested.ts / 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}</span>
          <span>{turns === 1 ? "1 turn" : `${turns} turns`}</span>
          <span>{duration(timeline.end)}</span>
          {spent.tokens > 0 && <span>{tokens(spent.tokens)} tokens{cost(spent.microdollars)}</span>}
          <span>{events.length} events</span>
          <span className="session-whole-id">{id}</span>
        </p>
      )}
      <Family events={events} requested={requested} />
    </div>
  );
}
