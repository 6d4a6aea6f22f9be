/** What was said, as the log has it; each line is a place in time. */
import { type ReactElement, useEffect, useRef } from "react";
import { duration, functionName } from "../words";
import type { LogEvent } from "./api";

const SHOWN = new Set(["user.said", "agent.said", "tool.called"]);

function text(event: LogEvent, name: string): string {
  const value = event.data[name];
  return typeof value === "string" ? value : "";
}

interface TranscriptProps {
  events: readonly LogEvent[];
  times: readonly number[];
  selected: number;
  onSelect: (index: number) => void;
}

export function Transcript({ events, times, selected, onSelect }: TranscriptProps): ReactElement {
  const lines = events.flatMap((event, index) => (SHOWN.has(event.type) ? [{ event, index }] : []));
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
        {lines.map(({ event, index }) => {
          const role = event.type === "user.said" ? "user" : event.type === "agent.said" ? "assistant" : "tool";
          return (
            <li key={event.seq}>
              <button type="button" data-role={role} aria-current={index === current} onClick={() => onSelect(index)}>
                <span className="transcript-time">{duration(times[index] ?? 0)}</span>
                <span className="transcript-who">{role === "user" ? "You" : role === "assistant" ? "Agent" : "Tool"}</span>
                <span>
                  {role === "tool" ? functionName(text(event, "name")) : text(event, "text")}
                  {text(event, "unheard") !== "" && <span className="unheard"> {text(event, "unheard")}</span>}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
