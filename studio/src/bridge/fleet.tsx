/** The list of terminals, those that need somebody first, and the form that starts one. */
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { ask, complaint, useLoaded } from "../http";
import { type Card, inOrder, type Offer, stateWords } from "./cards";

interface RowProps {
  card: Card;
  open: boolean;
  onOpen: () => void;
  onBeside: () => void;
}

function Row({ card, open, onOpen, onBeside }: RowProps): ReactElement {
  const { name, state, title, directory, definition, ended, said } = card;
  const words = ended || state.words || title || directory || definition;
  return (
    <li data-needs={card.needs_you === true ? "" : undefined}>
      <button type="button" className="row-open" aria-pressed={open} onClick={onOpen}>
        <b>{name}</b>
        <span className="phase" data-phase={state.phase}>{stateWords(state)}</span>
        <small>{words}</small>
        {said?.text !== undefined && <small className="row-said">{said.by ? `${said.by}: ` : ""}“{said.text}”</small>}
      </button>
      {!open && <button type="button" className="row-beside" aria-label={`Open ${name} beside the others`} title="Open beside the others" onClick={onBeside}>+</button>}
    </li>
  );
}

function Starter({ onStarted }: { onStarted: (id: string) => void }): ReactElement {
  const { value } = useLoaded<{ offers: Offer[] }>("/api/terminals/definitions");
  const [program, setProgram] = useState("bash");
  const [name, setName] = useState("");
  const [directory, setDirectory] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");
  const chosen = value?.offers.find(({ definition }) => definition.id === program);
  const missing = chosen?.missing ?? "";
  const start = (event: SyntheticEvent): void => {
    event.preventDefault();
    setBusy(true);
    setFailed("");
    ask<Card>("/api/terminals", { method: "POST", body: { definition: program, name, directory } })
      .then(
        ({ id }) => {
          setName("");
          onStarted(id);
        },
        (cause: unknown) => setFailed(complaint(cause, "start terminals")),
      )
      .finally(() => setBusy(false));
  };
  return (
    <form className="starter" onSubmit={start}>
      <div className="starter-line">
        <select aria-label="Program" value={program} disabled={value === null} onChange={({ target }) => setProgram(target.value)}>
          {(value?.offers ?? []).map(({ definition, missing: lacks = "" }) => <option key={definition.id} value={definition.id}>{definition.title}{lacks === "" ? "" : " (missing)"}</option>)}
        </select>
        <button type="submit" className="button go" disabled={busy || chosen === undefined || missing !== ""}>Start</button>
      </div>
      <details>
        <summary>Name and folder</summary>
        <label>Name<input value={name} maxLength={64} placeholder={chosen?.definition.title ?? ""} onChange={({ target }) => setName(target.value)} /></label>
        <label>Folder<input value={directory} maxLength={4096} placeholder="Home" spellCheck={false} onChange={({ target }) => setDirectory(target.value)} /></label>
      </details>
      {missing !== "" && <p>{missing}</p>}
      {failed !== "" && <p role="status" className="outcome" data-failed="true">{failed}</p>}
    </form>
  );
}

interface FleetProps {
  cards: Card[];
  open: string[];
  isolation: string;
  onOpen: (id: string, beside: boolean) => void;
}

export function FleetList({ cards, open, isolation, onOpen }: FleetProps): ReactElement {
  const needed = cards.filter((card) => card.needs_you === true).length;
  const workspaces = [...new Set(cards.map(({ workspace }) => workspace))];
  const rows = (shown: Card[]): ReactElement => (
    <ul className="rows">
      {shown.map((card) => <Row key={card.id} card={card} open={open.includes(card.id)} onOpen={() => onOpen(card.id, false)} onBeside={() => onOpen(card.id, true)} />)}
    </ul>
  );
  return (
    <aside className="fleet" aria-label="Terminals">
      <h1>Bridge</h1>
      <p role="status" className={needed > 0 ? "needed" : "unseen"}>{needed === 0 ? "Nobody needs you." : `${needed} ${needed === 1 ? "needs" : "need"} you.`}</p>
      <Starter onStarted={(id) => onOpen(id, true)} />
      {workspaces.length < 2
        ? rows(inOrder(cards))
        : workspaces.map((workspace) => (
            <section key={workspace}>
              <h2>{workspace}</h2>
              {rows(inOrder(cards.filter((card) => card.workspace === workspace)))}
            </section>
          ))}
      {cards.length > 0 && isolation !== "" && <p className="isolation">{isolation}</p>}
    </aside>
  );
}
