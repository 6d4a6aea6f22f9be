/** One open terminal: its screen, who has its keys, and what can be done with it. */
import { lazy, type ReactElement, Suspense, type SyntheticEvent, useState } from "react";
import { ask, complaint, useLoaded } from "../http";
import { type Card, type Explained, type Happenings, stateWords } from "./cards";
import type { TerminalSocket } from "./socket";

// The emulator is the largest part, and the list does not need it.
const TerminalView = lazy(() => import("./terminal").then(({ TerminalView: view }) => ({ default: view })));

type More = "" | "close" | "rename" | "explain" | "history";

/** Happenings that the history of a terminal shows. */
const SHOWN = 100;

function Rename({ card, onName, onDone }: { card: Card; onName: (name: string) => void; onDone: () => void }): ReactElement {
  const [name, setName] = useState(card.name);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (name.trim() !== "") onName(name.trim());
  };
  return (
    <form className="pane-more" onSubmit={submit} onKeyDown={({ key }) => key === "Escape" && onDone()}>
      <input aria-label="New name" value={name} maxLength={64} autoFocus onChange={({ target }) => setName(target.value)} />
      <button type="submit" className="button" disabled={name.trim() === ""}>Save</button>
      <button type="button" className="button" onClick={onDone}>Cancel</button>
    </form>
  );
}

function Explanation({ id }: { id: string }): ReactElement {
  const { value, error } = useLoaded<Explained>(`/api/terminals/${id}/explain`, true);
  if (value === null) return <div className="pane-more" role="status">{error?.message ?? "Asking…"}</div>;
  return (
    <div className="pane-more" role="region" aria-label="Why this state">
      <table>
        <tbody>
          {value.rungs.map(({ source, says, counts, why }) => (
            <tr key={source} data-counts={counts ? "" : undefined}>
              <th scope="row">{source}</th>
              <td>{says || "nothing"}</td>
              <td>{why}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function History({ life }: { life: string }): ReactElement {
  const { value, error } = useLoaded<Happenings>(`/api/terminals/lives/${life}?newest=true&limit=${SHOWN}`, true);
  if (value === null) return <div className="pane-more" role="status">{error?.message ?? "Reading its log…"}</div>;
  return (
    <div className="pane-more history" role="region" aria-label="What happened here" tabIndex={0}>
      <table>
        <tbody>
          {value.events.toReversed().map(({ seq, at_ms: at, sentence }) => (
            <tr key={seq}>
              <th scope="row"><time dateTime={new Date(at).toISOString()}>{new Date(at).toLocaleTimeString()}</time></th>
              <td>{sentence}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {value.more && <p>Earlier: <code>voxbridge terminals log {life}</code></p>}
    </div>
  );
}

interface PaneProps {
  socket: TerminalSocket;
  connection: string;
  card: Card;
  active: boolean;
  onFocus: () => void;
  onHide: () => void;
  onTrouble: (trouble: string) => void;
}

export function Pane({ socket, connection, card, active, onFocus, onHide, onTrouble }: PaneProps): ReactElement {
  const [more, setMore] = useState<More>("");
  const holder = card.held_by ?? "";
  const mine = holder !== "" && card.held_connection === connection;
  const change = (path: string, method: "POST" | "DELETE" = "POST", body: object = {}): void => {
    setMore("");
    ask(`/api/terminals/${card.id}${path}`, { method, ...(method === "POST" ? { body } : {}) }).then(
      () => onTrouble(""),
      (cause: unknown) => onTrouble(complaint(cause, "change terminals")),
    );
  };
  const toggle = (what: More): void => setMore((before) => (before === what ? "" : what));
  const dead = card.state.phase === "dead";
  return (
    <section className="pane" aria-label={card.name} data-terminal={card.id} data-active={active ? "" : undefined} onFocusCapture={onFocus}>
      <header>
        <h2>{card.name}</h2>
        <span className="phase" data-phase={card.state.phase}>{stateWords(card.state)}</span>
        {holder !== "" && <span className="holder">{mine ? "You alone type" : `${holder} types, in another window`}</span>}
        {card.stale === true && <span className="holder">does not answer</span>}
        <div className="pane-buttons">
          {dead && <button type="button" data-first onClick={() => change("/restart", "POST", { resume: card.resumable === true })}>{card.resumable === true ? "Resume" : "Restart"}</button>}
          {card.stale === true && !dead && <button type="button" data-first onClick={() => change("/restart")}>Restart</button>}
          {!dead && <button type="button" data-first={holder !== "" && !mine ? "" : undefined} onClick={() => socket.order(mine ? "give" : "take", card.id)}>{mine ? "Give back" : "Take over"}</button>}
          <button type="button" aria-expanded={more === "explain"} onClick={() => toggle("explain")}>Explain</button>
          <button type="button" aria-expanded={more === "history"} onClick={() => toggle("history")}>History</button>
          <button type="button" aria-expanded={more === "rename"} onClick={() => toggle("rename")}>Rename</button>
          <button type="button" onClick={onHide}>Hide</button>
          <button type="button" aria-expanded={more === "close"} onClick={() => toggle("close")}>Close</button>
        </div>
      </header>
      {more === "rename" && <Rename card={card} onName={(name) => change("/rename", "POST", { name })} onDone={() => setMore("")} />}
      {more === "explain" && <Explanation id={card.id} />}
      {more === "history" && <History life={card.life ?? ""} />}
      {more === "close" && (
        <div className="pane-more" role="group" aria-label={`Close ${card.name}`}>
          <span>This ends everything that it started.</span>
          <button type="button" className="button ask-yes" onClick={() => change("", "DELETE")}>Close it</button>
          <button type="button" className="button" onClick={() => setMore("")}>Keep it</button>
        </div>
      )}
      <Suspense fallback={<div className="screen" aria-busy="true" />}>
        <TerminalView socket={socket} card={card} active={active} held={holder !== "" && !mine} />
      </Suspense>
    </section>
  );
}
