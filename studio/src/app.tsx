/** The frame around the rooms: navigation, theme, help. Owns the call, so that it goes on while another room is open. */
import { Fragment, lazy, type ReactElement, Suspense, useEffect, useRef, useState } from "react";
import { Probe } from "voxbridge/probe";
import { useVoiceAgent } from "voxbridge/react";
import { Link, useLocation } from "wouter";
import { lock, useLocked, useRound } from "./access";
import { useVisits } from "./awareness/visits";
import { Help } from "./help";
import { Icon, Wordmark } from "./icons";
import { answerFor, PAGE_TOOLS } from "./page/tools";
import { expose, isProbing } from "./probe";
import { ROOMS } from "./rooms";
import { TalkRoom } from "./talk/room";
import { useTheme } from "./theme";
import { Unlock } from "./unlock";
import { STATE_WORDS } from "./words";

// Rooms that are not the first thing that anybody opens.
const AgentsRoom = lazy(() => import("./agents/room").then(({ AgentsRoom: room }) => ({ default: room })));
const AwarenessRoom = lazy(() => import("./awareness/room").then(({ AwarenessRoom: room }) => ({ default: room })));
const BridgeRoom = lazy(() => import("./bridge/room").then(({ BridgeRoom: room }) => ({ default: room })));
const KeysRoom = lazy(() => import("./keys/room").then(({ KeysRoom: room }) => ({ default: room })));
const SessionList = lazy(() => import("./sessions/list").then(({ SessionList: list }) => ({ default: list })));
const SessionRoom = lazy(() => import("./sessions/room").then(({ SessionRoom: room }) => ({ default: room })));
const ToolsRoom = lazy(() => import("./tools/room").then(({ ToolsRoom: room }) => ({ default: room })));

/** A part of an address as it was meant; one that is no such part as it stands. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function App(): ReactElement {
  const [probe] = useState(() => (isProbing() ? new Probe() : null));
  const call = useVoiceAgent({ probe, tools: PAGE_TOOLS, awareness: true });
  const [path] = useLocation();
  const [theme, nextTheme] = useTheme();
  const help = useRef<HTMLDialogElement>(null);
  useEffect(() => expose(call.agent), [call.agent]);
  useEffect(() => answerFor(call.agent), [call.agent]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const inField = event.target instanceof HTMLElement && event.target.closest("input, textarea, select") !== null;
      if (event.key === "?" && !inField && help.current?.open === false) help.current.showModal();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const { agent } = call;
  useEffect(
    () =>
      agent.on("start_tour", ({ tour, named }) => {
        void import("./tour/tours").then(({ begin }) => begin(agent, tour, named === true));
      }),
    [agent],
  );
  /** In a call it is asked for in words, so that the agent says it. */
  const tour = (): void => {
    if (call.connection === "connected") agent.sendText("Show me around").catch(() => undefined);
    else void import("./tour/tours").then(({ begin }) => begin(agent, null, false));
  };
  const [, room, id, part = ""] = path.split("/");
  const title = ROOMS.find(([path]) => path === room)?.[1] ?? "Talk";
  useEffect(() => {
    document.title = `${title} · Voxbridge`;
  }, [title]);
  const locked = useLocked();
  const round = useRound();
  const refused = call.error?.code === "UNAUTHENTICATED";
  useEffect(() => {
    if (refused) lock();
  }, [refused]);
  const shut = locked && room !== "keys" && (call.connection === "idle" || call.connection === "closed");
  useVisits(path, title, call.connection === "idle" || call.connection === "closed", locked);
  const elsewhere = room !== "" && (call.connection === "connected" || call.connection === "reconnecting");
  return (
    <>
      <header className="topbar">
        <Link to="/" className="brand" aria-label="Voxbridge">
          <Wordmark />
          <span>Voxbridge</span>
        </Link>
        <nav aria-label="Rooms">
          <Link to="/" aria-current={room === "" ? "page" : undefined}>
            Talk
            {elsewhere && <span className="in-call"><span aria-hidden="true" /> {STATE_WORDS[call.state].toLowerCase()}</span>}
          </Link>
          {ROOMS.map(([path, name]) => <Link key={path} to={`/${path}`} aria-current={room === path ? "page" : undefined}>{name}</Link>)}
        </nav>
        <div className="tools">
          <button type="button" className="quiet" onClick={nextTheme} aria-label={`Theme: ${theme}. Change it`} title={`Theme: ${theme}`}>
            <Icon name={theme} />
          </button>
          <button type="button" className="quiet" onClick={() => help.current?.showModal()} aria-label="Help" title="Help (?)">
            <Icon name="help" />
          </button>
        </div>
      </header>
      {shut && <main className="sessions keys"><Unlock key={round} /></main>}
      {!shut && (
        <Fragment key={round}>
          <Suspense fallback={<main className="sessions" aria-busy="true" />}>
            {room === "sessions" && (id ? <SessionRoom key={id} id={id} /> : <SessionList />)}
            {room === "agents" && <AgentsRoom />}
            {room === "tools" && <ToolsRoom call={call} name={id ?? ""} run={decoded(part)} />}
            {room === "awareness" && <AwarenessRoom />}
            {room === "bridge" && <BridgeRoom />}
            {room === "keys" && <KeysRoom />}
          </Suspense>
          {title === "Talk" && <TalkRoom call={call} />}
        </Fragment>
      )}
      <Help dialog={help} onTour={tour} />
    </>
  );
}
