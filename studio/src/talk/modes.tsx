/** Where the captain's words go, with an agent over terminals: to the officer, into the active terminal, or as the name of a key. */
import type { ReactElement } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { AGENTS, type Roster } from "../agents/api";
import { useLoaded } from "../http";
import { type Mode, MODES, steered, SWITCH } from "./mode";

export function Modes({ call }: { call: UseVoiceAgent }): ReactElement | null {
  const roster = useLoaded<Roster>(AGENTS).value;
  const speaker = roster?.agents.find((agent) => agent.name === call.speaker.agent);
  if (call.connection !== "connected" || !speaker?.tools?.includes(SWITCH)) return null;
  const { mode: now, auto } = steered(call.conversation);
  // The words that are said for it: the call that they make is in the conversation, like every other.
  const choose = (mode: Mode): void => void (mode === now || call.agent.sendText(`${MODES[mode].name} mode`));
  return (
    <div className="modes" role="group" aria-label="Where your words go">
      {(Object.keys(MODES) as Mode[]).map((mode) => (
        <button key={mode} type="button" className="button" aria-pressed={mode === now} title={MODES[mode].about} onClick={() => choose(mode)}>
          {MODES[mode].name}
        </button>
      ))}
      <button type="button" className="button" aria-pressed={auto} title={auto ? "What you say is sent at once" : "What you say waits in the text box"} onClick={() => void call.agent.sendText(auto ? "Auto off" : "Auto on")}>
        Auto
      </button>
      <span className="modes-about">{auto ? MODES[now].about : "What you say waits in the text box, and you send it."}</span>
    </div>
  );
}
