/** What was said, as the log has it; each line is a place in time. */
import { memo, type ReactElement, useEffect, useMemo, useRef } from "react";
import { agentName, duration, functionName, handedOver } from "../words";
import type { LogEvent } from "./api";
import { text } from "./layout";
import { type Line, lines as linesOf } from "./lines";

interface TranscriptProps {
  events: readonly LogEvent[];
  times: readonly number[];
  selected: number;
  onSelect: (index: number) => void;
}

export function Transcript({ events, times, selected, onSelect }: TranscriptProps): ReactElement {
  const lines = useMemo(() => linesOf(events), [events]);
  const current = lines.findLast(({ index }) => index <= selected)?.index ?? -1;
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const line = list.current?.querySelector<HTMLElement>("[aria-current=true]");
    if (line && list.current) list.current.scrollTo({ top: line.offsetTop - list.current.offsetTop - 60 });
  }, [current]);
  return (
    <section className="panel" aria-label="Transcript">
      <h2>Transcript</h2>
      {lines.length === 0 && <p className="empty-line">No words here yet.</p>}
      <ol ref={list} className="transcript">
        {lines.map(({ event, index }) => (
          <Entry key={event.seq} event={event} index={index} at={times[index] ?? 0} current={index === current} onSelect={onSelect} />
        ))}
      </ol>
    </section>
  );
}

interface EntryProps extends Line {
  at: number;
  current: boolean;
  onSelect: (index: number) => void;
}

const ROLES: Record<string, string> = { "user.said": "user", "agent.said": "assistant", "handoff.started": "handoff" };

function who(role: string, event: LogEvent): string {
  if (role === "assistant") return text(event, "agent") === "" ? "Agent" : agentName(text(event, "agent"));
  return role === "user" ? "You" : role === "handoff" ? "" : "Tool";
}

function words(role: string, event: LogEvent): string {
  if (role === "tool") return functionName(text(event, "name"));
  return role === "handoff" ? handedOver(text(event, "source"), text(event, "target"), text(event, "reason"), true) : text(event, "text");
}

/** Of a long session only the lines that change are drawn again while the playhead moves. */
const Entry = memo(function Entry({ event, index, at, current, onSelect }: EntryProps): ReactElement {
  const role = ROLES[event.type] ?? "tool";
  return (
    <li>
      <button type="button" data-role={role} aria-current={current} onClick={() => onSelect(index)}>
        <span className="transcript-time">{duration(at)}</span>
        <span className="transcript-who">{who(role, event)}</span>
        <span>
          {text(event, "filler") !== "" && <span className="unheard">{text(event, "filler")} </span>}
          {words(role, event)}
          {text(event, "unheard") !== "" && <span className="unheard"> {text(event, "unheard")}</span>}
        </span>
      </button>
    </li>
  );
});
