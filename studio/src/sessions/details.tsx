/** One event, whole, and the inputs that its writer had taken ahead of it. */
import { type ReactElement, useState } from "react";
import { Link } from "wouter";
import { duration, told } from "../words";
import { complaint, fetchEvents, type LogEvent } from "./api";
import { text } from "./layout";

interface DetailsProps {
  id: string;
  event: LogEvent | undefined;
  /** Position of the event before; the journal stands in between. */
  before: number;
  at: number;
  index: number;
  count: number;
  onStep: (by: number) => void;
}

export function Details({ id, event, before, at, index, count, onStep }: DetailsProps): ReactElement {
  return (
    <section className="panel details" aria-label="Event">
      <div className="details-head">
        <h2>{event?.type ?? "Event"}</h2>
        <div role="group" aria-label="Step through the events">
          <button type="button" className="button" disabled={index <= 0} onClick={() => onStep(-1)} aria-label="Event before">‹</button>
          <span>{index + 1} of {count}</span>
          <button type="button" className="button" disabled={index >= count - 1} onClick={() => onStep(1)} aria-label="Event after">›</button>
        </div>
      </div>
      {event === undefined ? (
        <p className="empty-line">Choose a mark on the timeline.</p>
      ) : (
        <>
          {told(event.type, event.data) !== "" && <p className="event-told">{told(event.type, event.data)}</p>}
          {event.type.startsWith("run.") && <p className="event-told"><Link to={`/tools/runs/${encodeURIComponent(text(event, "run_id"))}`}>Each step of the run</Link></p>}
          <dl className="facts">
            <div><dt>At</dt><dd>{duration(at)}</dd></div>
            <div><dt>Writer</dt><dd>{event.writer}</dd></div>
            <div><dt>Position</dt><dd>{event.seq}</dd></div>
            <div><dt>Shown to clients</dt><dd>{event.visibility === "c" || event.visibility === "client" ? "yes" : "no"}</dd></div>
          </dl>
          <pre tabIndex={0} role="region" aria-label="Event as JSON">{JSON.stringify({ id: event.id, cause: event.cause, data: event.data }, null, 2)}</pre>
          <Inputs key={event.seq} id={id} after={before} until={event.seq} />
        </>
      )}
    </section>
  );
}

interface Taken {
  writer: string;
  inputs: string[];
}

/** Read when it is opened: journals are most of a log, and few are looked at. */
function Inputs({ id, after, until }: { id: string; after: number; until: number }): ReactElement {
  const [found, setFound] = useState<Taken[] | string | null>(null);
  const load = (open: boolean): void => {
    if (!open || found !== null) return;
    fetchEvents(id, after, new AbortController().signal)
      .then(({ events }) => setFound(events.filter(({ seq, type }) => seq < until && type.endsWith(".journal")).map(taken)))
      .catch((cause: unknown) => setFound(complaint(cause, "read what the services took in")));
  };
  return (
    <details className="inputs" onToggle={(event) => load(event.currentTarget.open)}>
      <summary>Inputs taken since the event before</summary>
      {typeof found === "string" && <p>{found}</p>}
      {Array.isArray(found) && found.length === 0 && <p className="empty-line">None: it is made of events in the log.</p>}
      {Array.isArray(found) && found.map(({ writer, inputs }, i) => (
        <pre key={i} tabIndex={0} role="region" aria-label={`Inputs of ${writer}`}>{`${writer}\n${inputs.join("\n")}`}</pre>
      ))}
    </details>
  );
}

function taken({ writer, data }: LogEvent): Taken {
  const inputs = Array.isArray(data["inputs"]) ? data["inputs"] : [];
  return { writer, inputs: inputs.map((input: unknown) => (Array.isArray(input) ? line(input) : JSON.stringify(input))) };
}

function line([, seq, input]: unknown[]): string {
  return typeof seq === "number" ? `event at position ${seq}` : JSON.stringify(input);
}
