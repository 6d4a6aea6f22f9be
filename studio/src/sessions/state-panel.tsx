/** What the session knew at the moment under the playhead, as the voice service folds it from the log. Owns when it is asked. */
import { type ReactElement, type ReactNode, useEffect, useRef, useState } from "react";
import { duration, functionName } from "../words";
import { complaint, fetchState, isRefused, ReadError, type Reply, type SessionState } from "./api";

const SETTLE_MS = 90;

interface Asked {
  state: SessionState | null;
  error: ReadError | null;
}

/** The state at a time in µs; while the next one is asked for, the one before stays. Who may not read one may read none. */
function useStateAt(id: string, at: number): Asked {
  const [asked, setAsked] = useState<Asked>({ state: null, error: null });
  const refused = isRefused(asked.error);
  useEffect(() => {
    if (refused) return;
    const leaving = new AbortController();
    const timer = setTimeout(() => {
      fetchState(id, at, leaving.signal)
        .then((state) => setAsked({ state, error: null }))
        .catch((cause: unknown) => {
          if (cause instanceof ReadError) setAsked((before) => ({ ...before, error: cause }));
        });
    }, SETTLE_MS);
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [id, at, refused]);
  return asked;
}

export function StatePanel({ id, at }: { id: string; at: number }): ReactElement {
  const { state, error } = useStateAt(id, at);
  return (
    <section className="panel state" aria-label="State">
      <h2>State at this moment</h2>
      {error !== null && <p className="state-error" role="status">{complaint(error, "read the state of this call")}</p>}
      {state === null ? error === null && <p className="empty-line">Folding the log…</p> : <Folded state={state} />}
    </section>
  );
}

function Folded({ state }: { state: SessionState }): ReactElement {
  const calls = state.reply?.calls ?? [];
  const history = useRef<HTMLOListElement>(null);
  useEffect(() => {
    history.current?.scrollTo(0, history.current.scrollHeight);
  }, [state.history_count]);
  return (
    <>
      <dl className="facts">
        <Fact name="Doing">{state.state.replaceAll("_", " ")}</Fact>
        <Fact name="Worker">{state.worker === "" ? "none yet" : `${state.worker}, term ${state.term}`}</Fact>
        <Fact name="Turns">{state.turns}</Fact>
        <Fact name="Inputs taken">{state.inputs.toLocaleString("en")}</Fact>
        {state.client_away_since !== null && <Fact name="Client">away for {duration((state.at - state.client_away_since) / 1000)}</Fact>}
      </dl>
      {state.speech !== null && (
        <Part title="Being said by the caller">
          <p>{state.speech.text ?? (state.speech.to_ms === null ? "Speaking; no words yet." : "Understanding what was said.")}</p>
        </Part>
      )}
      {state.reply !== null && <Part title="Reply"><ReplyLine reply={state.reply} /></Part>}
      {state.cut !== null && <Part title="Cut off, not yet settled"><ReplyLine reply={state.cut} /></Part>}
      {calls.length > 0 && (
        <Part title="Open calls">
          <ul>{calls.map((call) => <li key={call.call_id}>{functionName(call.name)} <code>{call.call_id}</code>{call.browser ? " · answered by the page" : ""}</li>)}</ul>
        </Part>
      )}
      {state.effects.length > 0 && (
        <Part title="Running">
          <ul>{state.effects.map((effect) => <li key={effect.id}>{functionName(effect.kind)} <span className="quiet-text">since {duration((state.at - effect.since) / 1000)}</span></li>)}</ul>
        </Part>
      )}
      {state.timers.length > 0 && (
        <Part title="Timers">
          <ul>{state.timers.map((timer) => <li key={timer.name}>{functionName(timer.name)} <span className="quiet-text">{due(timer.due - state.at)}</span></li>)}</ul>
        </Part>
      )}
      {state.notices.length > 0 && <Part title="To be said"><ul>{state.notices.map((notice, i) => <li key={i}>{notice}</li>)}</ul></Part>}
      <Part title={state.history_count === state.history.length ? `History, ${messages(state.history_count)}` : `History, the last ${state.history.length} of ${messages(state.history_count)}`}>
        {state.history.length === 0 && <p className="empty-line">Nothing was said yet.</p>}
        <ol className="state-history" tabIndex={0} aria-label="History" ref={history}>
          {state.history.map(({ role, text, calls: made }, i) => (
            <li key={i}>
              <b>{role}</b>
              <span>{[text, ...made].filter((part) => part !== "").join(" · ")}</span>
            </li>
          ))}
        </ol>
      </Part>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }): ReactElement {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

function Part({ title, children }: { title: string; children: ReactNode }): ReactElement {
  return <section className="state-part"><h3>{title}</h3>{children}</section>;
}

function ReplyLine({ reply }: { reply: Reply }): ReactElement {
  const words = [reply.text, reply.unsplit].filter((part) => part !== "").join(" ");
  return (
    <>
      <p>{words === "" ? "No words yet." : words}</p>
      <p className="quiet-text">
        {reply.turn === 0 ? "A notice" : `Turn ${reply.turn}`}, generation {reply.generation}: {duration(reply.played_ms)} heard of {duration(reply.made_ms)} made{reply.closed ? "" : ", more to come"}
      </p>
    </>
  );
}

function messages(count: number): string {
  return count === 1 ? "1 message" : `${count} messages`;
}

function due(us: number): string {
  return us >= 0 ? `in ${duration(us / 1000)}` : `overdue by ${duration(-us / 1000)}`;
}
