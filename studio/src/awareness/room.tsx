/** What agents are told of this screen, word for word, and a switch for each source. */
import { type ReactElement, useState } from "react";
import { ask, complaint, isRefused, type Loaded, ReadError, useLoaded } from "../http";
import { Notice } from "../notice";
import { Unlock } from "../unlock";

const AWARENESS = "/api/vox/awareness";
/** The gateway's measure: four characters a token, and at most 600 tokens. */
const LIMIT = 2400;

type Source = "pages" | "errors" | "context";

interface Known {
  prompt: string;
  recent_pages: { visit_id: string }[];
  unresolved_errors: { error_id: string; error_type: string; message: string; count: number }[];
  context: { key: string }[];
  sources: Record<Source, boolean>;
}

const SOURCES: readonly [Source, string, string][] = [
  ["pages", "Pages", "Which pages you opened, with their titles. The agent is told the newest five."],
  ["errors", "Errors", "Errors that a page did not catch, and calls of functions that failed. The agent is told the newest three."],
  ["context", "Context", "What a page states about your work, such as the project that is open."],
];

function count(known: Known, source: Source): number {
  return { pages: known.recent_pages, errors: known.unresolved_errors, context: known.context }[source].length;
}

function SourceRow({ source, name, about, known, onChanged }: { source: Source; name: string; about: string; known: Known; onChanged: () => void }): ReactElement {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");
  const on = known.sources[source];
  const change = async (): Promise<void> => {
    setBusy(true);
    setFailed("");
    try {
      await ask(`${AWARENESS}/sources/${source}`, { method: "PUT", body: { on: !on } });
      onChanged();
    } catch (cause) {
      setFailed(cause instanceof ReadError ? complaint(cause, "switch sources") : "The switch could not be sent.");
    } finally {
      setBusy(false);
    }
  };
  return (
    <li className="source">
      <div>
        <h3 id={`source-${source}`}>{name}</h3>
        <p id={`about-${source}`} className="quiet-text">{about}</p>
        <p className="quiet-text" role="status">{on ? `On. ${count(known, source)} told now.` : "Off. Nothing is recorded, and what was is erased."}</p>
        {failed !== "" && <p className="outcome" data-failed>{failed}</p>}
      </div>
      <button type="button" role="switch" className="switch" aria-checked={on} aria-labelledby={`source-${source}`} aria-describedby={`about-${source}`} disabled={busy} onClick={() => void change()}>
        <span aria-hidden="true" />
      </button>
    </li>
  );
}

function Errors({ known, onChanged }: { known: Known; onChanged: () => void }): ReactElement | null {
  const resolve = (id: string): void => void ask(`${AWARENESS}/errors/${encodeURIComponent(id)}`, { method: "DELETE" }).then(onChanged, onChanged);
  if (known.unresolved_errors.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="open-errors">
      <h2 id="open-errors">Open errors</h2>
      <ul className="open-errors">
        {known.unresolved_errors.map(({ error_id: id, error_type: kind, message, count: times }) => (
          <li key={id}>
            <p><b>{kind}</b> {message}{times > 1 ? ` (${times} times)` : ""}</p>
            <button type="button" className="button" aria-label={`Resolve ${kind}: ${message}`} onClick={() => resolve(id)}>Resolve</button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function AwarenessRoom(): ReactElement {
  const { value, error, reload }: Loaded<Known> = useLoaded(AWARENESS, true);
  const refused = isRefused(error);
  const locked = refused || error?.status === 401;
  return (
    <main className="sessions awareness">
      <div className="sessions-head">
        <h1>Awareness</h1>
        <p className="quiet-text">What agents are told of your screen. You see it word for word, and switch each source off.</p>
      </div>
      {locked && <Unlock administrator cannot={refused ? "read this" : ""} />}
      {error !== null && !locked && <Notice title={error.message}><p>Calls go on. This page looks again every 5 seconds.</p></Notice>}
      {value === null && error === null && <p className="empty-line" role="status">Asking the gateway…</p>}
      {value !== null && !locked && (
        <>
          <section className="panel" aria-labelledby="sources">
            <h2 id="sources">Sources</h2>
            <ul className="sources">
              {SOURCES.map(([source, name, about]) => <SourceRow key={source} source={source} name={name} about={about} known={value} onChanged={reload} />)}
            </ul>
          </section>
          <section className="panel" aria-labelledby="told">
            <h2 id="told">What the agent is told, word for word</h2>
            {value.prompt === "" ? <p className="empty-line">Nothing is known of your screen, so nothing is told.</p> : <pre className="told" tabIndex={0} aria-labelledby="told">{value.prompt}</pre>}
            <p className="quiet-text">{value.prompt.length.toLocaleString("en")} of {LIMIT.toLocaleString("en")} characters. Ages are those of this moment. It is data: it approves nothing and starts nothing.</p>
          </section>
          <Errors known={value} onChanged={reload} />
        </>
      )}
    </main>
  );
}
