/** The screen of a terminal, drawn by xterm.js. It answers no query of a program: the service has. */
import { FitAddon } from "@xterm/addon-fit";
import { type IFunctionIdentifier, Terminal } from "@xterm/xterm";
import { type ReactElement, useEffect, useRef, useState } from "react";
import type { Card } from "./cards";
import type { TerminalSocket } from "./socket";
import { KEYS, type TouchKey } from "./touch-keys";

const RESIZE_MS = 100;
const SCROLLBACK = 1000;
const THEME = { background: "#0d1413", foreground: "#e9f1ef", cursor: "#4fd6c2", cursorAccent: "#04211d", selectionBackground: "#2d5a54" };
/** Queries that xterm.js would answer: attributes, status, reports of the window and of modes. */
const QUERIES: IFunctionIdentifier[] = [
  { final: "c" }, { prefix: ">", final: "c" }, { prefix: "=", final: "c" }, { final: "n" }, { prefix: "?", final: "n" }, { prefix: ">", final: "q" }, { final: "t" },
  { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" },
];
const COLOURS = [4, 10, 11, 12];
const CLIPBOARD = 52;
const encoder = new TextEncoder();

function silence({ parser }: Terminal): void {
  const swallow = (): boolean => true;
  for (const query of QUERIES) parser.registerCsiHandler(query, swallow);
  for (const colour of COLOURS) parser.registerOscHandler(colour, (data) => data.includes("?"));
  parser.registerOscHandler(CLIPBOARD, swallow);
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, swallow);
}

interface TerminalProps {
  socket: TerminalSocket;
  card: Card;
  active: boolean;
  /** Somebody else has the keys. */
  held: boolean;
}

export function TerminalView({ socket, card, active, held }: TerminalProps): ReactElement {
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef<Terminal | null>(null);
  const control = useRef(false);
  const [controls, setControls] = useState(false);
  const { id } = card;
  useEffect(() => {
    if (box.current === null) return undefined;
    const terminal = new Terminal({ scrollback: SCROLLBACK, fontSize: 13, cursorBlink: true, minimumContrastRatio: 4.5, theme: THEME, fontFamily: 'ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, monospace' });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    silence(terminal);
    terminal.open(box.current);
    drawn.current = terminal;
    let timer = 0;
    const measure = (): void => {
      const wanted = document.hasFocus() ? fit.proposeDimensions() : undefined;
      if (wanted !== undefined && wanted.cols >= 2 && wanted.rows >= 1) socket.size(id, Math.min(wanted.cols, 500), Math.min(wanted.rows, 500));
    };
    const later = (): void => {
      clearTimeout(timer);
      timer = window.setTimeout(measure, RESIZE_MS);
    };
    const observer = new ResizeObserver(later);
    observer.observe(box.current);
    // Of several windows the one that somebody looks at has the say.
    addEventListener("focus", later);
    const typed = terminal.onData((keys) => {
      const letter = control.current && keys.length === 1 ? keys.toUpperCase().charCodeAt(0) & 0x1f : null;
      control.current = false;
      setControls(false);
      socket.type(id, letter === null ? encoder.encode(keys) : Uint8Array.of(letter));
    });
    const binary = terminal.onBinary((keys) => socket.type(id, Uint8Array.from(keys, (one) => one.charCodeAt(0))));
    socket.attach(id, {
      screen: (data, columns, rows) => {
        terminal.resize(columns, rows);
        terminal.write(data);
      },
      output: (data) => terminal.write(data),
    });
    return () => {
      clearTimeout(timer);
      removeEventListener("focus", later);
      observer.disconnect();
      typed.dispose();
      binary.dispose();
      socket.detach(id);
      terminal.dispose();
      drawn.current = null;
    };
  }, [socket, id]);
  useEffect(() => {
    if (drawn.current !== null) drawn.current.options.disableStdin = held;
  }, [held]);
  useEffect(() => {
    if (active) drawn.current?.focus();
  }, [active]);
  const unseen = card.seen === false;
  useEffect(() => {
    if (active && unseen) socket.order("see", id);
  }, [active, unseen, socket, id]);
  const press = (key: TouchKey): void => {
    const terminal = drawn.current;
    if (terminal === null) return;
    if (key.bytes === "") {
      control.current = !control.current;
      setControls(control.current);
    } else {
      terminal.input(terminal.modes.applicationCursorKeysMode ? (key.application ?? key.bytes) : key.bytes);
    }
    terminal.focus();
  };
  return (
    <>
      <div ref={box} className="screen" data-held={held ? "" : undefined} role="group" aria-label={`Screen of ${card.name}`} />
      <div className="touch-keys" role="group" aria-label="Keys">
        {KEYS.map((key) => <button key={key.name} type="button" aria-pressed={key.bytes === "" ? controls : undefined} onClick={() => press(key)}>{key.name}</button>)}
      </div>
    </>
  );
}
