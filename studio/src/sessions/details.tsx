/** One event, whole. */
import type { ReactElement } from "react";
import { duration } from "../words";
import type { LogEvent } from "./api";

interface DetailsProps {
  event: LogEvent | undefined;
  at: number;
  index: number;
  count: number;
  onStep: (by: number) => void;
}

export function Details({ event, at, index, count, onStep }: DetailsProps): ReactElement {
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
          <dl className="facts">
            <div><dt>At</dt><dd>{duration(at)}</dd></div>
            <div><dt>Writer</dt><dd>{event.writer}</dd></div>
            <div><dt>Position</dt><dd>{event.seq}</dd></div>
            <div><dt>Shown to clients</dt><dd>{event.visibility === "c" || event.visibility === "client" ? "yes" : "no"}</dd></div>
          </dl>
          <pre tabIndex={0} role="region" aria-label="Event as JSON">{JSON.stringify({ id: event.id, cause: event.cause, data: event.data }, null, 2)}</pre>
        </>
      )}
    </section>
  );
}
