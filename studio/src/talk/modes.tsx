/** Where the captain's words go, with an agent over terminals: to the officer, into the active terminal, or as the name of a key. */
import type { ReactElement } from "react";
import type { Entry, UseVoiceAgent } from "voxbridge/react";
import { AGENTS, type Roster } from "../agents/api";
import { useLoaded } from "../http";
import { type Mode, modeOf, MODES, SWITCH } from "./mode";

export function Modes({ call }: { call: UseVoiceAgent }): ReactElement | null {
  const roster = useLoaded<Roster>(AGENTS).value;
  const speaker = roster?.agents.find((agent) => agent.name === call.speaker.agent);
  if (call.connection !== "connected" || !speaker?.tools?.includes(SWITCH)) return null;
  const conversation: readonly Entry[] = call.conversation;
  const now = modeOf(conversation);
  // The words that are said for it: the call that they make is in the conversation, like every other.
  const choose = (mode: Mode): void => void (mode === now || call.agent.sendText(`${MODES[mode].name} mode`));
  return (
    <div className="modes" role="group" aria-label="Where your words go">
      {(Object.keys(MODES) as Mode[]).map((mode) => (
        <button key={mode} type="button" className="button" aria-pressed={mode === now} title={MODES[mode].about} onClick={() => choose(mode)}>
          {MODES[mode].name}
        </button>
      ))}
      <span className="modes-about">{MODES[now].about}</span>
    </div>
  );
}
