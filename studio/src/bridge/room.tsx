/** The Bridge: every terminal with its state, and the open ones beside each other. Which are open is in the address. */
import styles from "inline:./bridge.css";
import { type ReactElement, useCallback, useEffect, useState } from "react";
import { useSearchParams } from "wouter";
import { isRefused } from "../http";
import { Notice } from "../notice";
import { Unlock } from "../unlock";
import { inOrder } from "./cards";
import { FleetList } from "./fleet";
import { onBridgeKey } from "./keys";
import { Pane } from "./pane";
import { type Fleet, NOBODY, TerminalSocket } from "./socket";

/** Panes beside each other; of more the ones that were opened first are hidden. */
const PANES = 4;

// Styles of this room alone, with those of xterm.js: the first load is without them.
const sheet = new CSSStyleSheet();
sheet.replaceSync(styles);
document.adoptedStyleSheets.push(sheet);

function useFleet(): [TerminalSocket, Fleet] {
  const [socket] = useState(() => new TerminalSocket());
  const [fleet, setFleet] = useState(NOBODY);
  useEffect(() => socket.start(setFleet), [socket]);
  return [socket, fleet];
}

function useOpen(): [string[], (change: (before: string[]) => string[]) => void] {
  const [search, setSearch] = useSearchParams();
  const open = (search.get("open") ?? "").split(",").filter((id) => id !== "");
  const change = useCallback(
    (how: (before: string[]) => string[]): void => {
      setSearch(
        (before) => {
          const ids = how((before.get("open") ?? "").split(",").filter((id) => id !== ""));
          return ids.length === 0 ? {} : { open: ids.join(",") };
        },
        { replace: true },
      );
    },
    [setSearch],
  );
  return [open, change];
}

export function BridgeRoom(): ReactElement {
  const [socket, fleet] = useFleet();
  const [open, setOpen] = useOpen();
  const [active, setActive] = useState(open[0] ?? "");
  const [trouble, setTrouble] = useState("");
  const { cards, known, refused } = fleet;
  const shown = open.flatMap((id) => cards.find((card) => card.id === id) ?? []);
  const show = useCallback(
    (id: string, beside: boolean): void => {
      setOpen((before) => (beside ? [...before.filter((one) => one !== id), id].slice(-PANES) : before.includes(id) ? before : [id]));
      setActive(id);
      setTrouble("");
    },
    [setOpen],
  );
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => onBridgeKey(event, (index) => {
      const card = inOrder(cards)[index];
      if (card !== undefined) show(card.id, false);
    });
    addEventListener("keydown", onKey, { capture: true });
    return () => removeEventListener("keydown", onKey, { capture: true });
  }, [cards, show]);
  const needed = cards.filter((card) => card.needs_you === true).length;
  useEffect(() => {
    document.title = `${needed > 0 ? `(${needed}) ` : ""}Bridge · Voxbridge`;
  }, [needed]);
  if (refused !== null) {
    return (
      <main className="sessions">
        <div className="sessions-head"><h1>Bridge</h1></div>
        <Unlock administrator cannot={isRefused(refused) ? "open terminals" : ""} />
      </main>
    );
  }
  const wrong = trouble || fleet.trouble;
  const empty = !known ? "Asking the terminals service…" : cards.length === 0 ? "No terminal runs. Start one: it goes on when this page, the gateway or the terminals service does not." : "Choose a terminal. + opens it beside the others.";
  return (
    <main className="bridge">
      <FleetList cards={cards} open={open} isolation={fleet.isolation} onOpen={show} />
      <div className="panes" data-count={shown.length}>
        {wrong !== "" && <Notice title={wrong} />}
        {shown.map((card) => (
          <Pane
            key={card.id}
            socket={socket}
            connection={fleet.connection}
            card={card}
            active={card.id === active}
            onFocus={() => setActive(card.id)}
            onHide={() => setOpen((before) => before.filter((one) => one !== card.id))}
            onTrouble={setTrouble}
          />
        ))}
        {shown.length === 0 && (known || wrong === "") && <p className="empty-line" role="status">{empty}</p>}
      </div>
    </main>
  );
}
