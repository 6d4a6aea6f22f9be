/** The lines of a session's transcript. Pure. */
import type { LogEvent } from "./api";
import { number, text } from "./layout";

const SHOWN = new Set(["user.said", "agent.said", "tool.called", "handoff.started"]);

export interface Line {
  event: LogEvent;
  /** Of the event in the log. */
  index: number;
}

/** One for each event that somebody hears or sees, but that what the user said in a turn is one: a pause had been taken for its end. */
export function lines(events: readonly LogEvent[]): Line[] {
  const found: Line[] = [];
  for (const [index, event] of events.entries()) {
    if (!SHOWN.has(event.type)) continue;
    const last = found.at(-1);
    const goesOn = event.data["continues"] === true && last?.event.type === "user.said" && number(last.event, "turn") === number(event, "turn");
    if (last !== undefined && goesOn) {
      const data = { ...last.event.data, text: `${text(last.event, "text")} ${text(event, "text")}` };
      found[found.length - 1] = { ...last, event: { ...last.event, data } };
    } else {
      found.push({ event, index });
    }
  }
  return found;
}
