/** Why a call was silent: asked of the gateway, which tells it from the log (`voxbridge/shared/log/silences.py`). Owns the question, not the answer. */
import { type ReactElement, useEffect, useState } from "react";
import { duration } from "../words";
import { complaint, ReadError, readSilences, type Silence, willPass } from "./api";

/** How long a person waits before the page says that it can tell why. */
const LONG_MS = 6_000;

interface SilencesProps {
  id: string;
  /** Where given, a silence is a place in time to go to. */
  onGo?: (at: number) => void;
}

/** A button that becomes its answer. */
export function Silences({ id, onGo }: SilencesProps): ReactElement {
  const [found, setFound] = useState<readonly Silence[] | null>(null);
  const [problem, setProblem] = useState("");
  const ask = (): void => {
    setProblem("");
    readSilences(id).then(setFound, (error: unknown) => setProblem(complaint(error, "read why this call was silent")));
  };
  return (
    <section className="panel interruptions" aria-label="Silences">
      <button type="button" className="button" onClick={ask}>Why was it silent?</button>
      <div role="status">
        {problem !== "" && <p>{problem}</p>}
        {found?.length === 0 && <p>Nobody waited for longer than 2.5 s.</p>}
      </div>
      {found !== null && found.length > 0 && (
        <ul>
          {found.map((silence) => (
            <li key={`${silence.from_ms}-${silence.cause}`}>
              <button type="button" className="gap-go" disabled={onGo === undefined} onClick={() => onGo?.(silence.from_ms)}>
                <span className="transcript-time">{duration(silence.from_ms)}</span>
                <b>{silence.why}</b>
                <span>{silence.open ? "now" : duration(silence.to_ms - silence.from_ms)}</span>
              </button>
              <p className="todo">{silence.todo}</p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** What a call in which nothing happens waits for, once that lasts. To be shown while it waits. */
export function WhySilent({ id }: { id: string }): ReactElement | null {
  const [why, setWhy] = useState<Silence | null>(null);
  useEffect(() => {
    const look = (): void => {
      readSilences(id).then(
        (found) => setWhy(found.findLast(({ open }) => open) ?? null),
        (cause: unknown) => {
          // Who may not read the log is told the state, as ever.
          if (cause instanceof ReadError && !willPass(cause)) clearInterval(timer);
        },
      );
    };
    const timer = setInterval(look, LONG_MS);
    return () => clearInterval(timer);
  }, [id]);
  if (why === null) return null;
  return <p className="hint" role="status">{why.why} {why.todo}</p>;
}
