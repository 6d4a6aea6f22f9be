/** Start, mute, stop, end: the buttons under the thumb. */
import { type ReactElement, useState } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { Icon, type IconName } from "../icons";
import type { Choice } from "./choice";
import { Chooser } from "./chooser";

function Round({ icon, label, disabled, onClick }: { icon: IconName; label: string; disabled?: boolean; onClick: () => void }): ReactElement {
  return (
    <button type="button" className="round" aria-label={label} title={label} disabled={disabled} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

interface ControlsProps {
  call: UseVoiceAgent;
  choice: Choice;
  choose: (choice: Choice) => void;
  onStart: () => void;
}

export function Controls({ call, choice, choose, onStart }: ControlsProps): ReactElement {
  const { agent, connection, microphone, state } = call;
  if (connection === "idle" || connection === "closed") {
    const elsewhere = state === "elsewhere";
    return (
      <div className="controls" data-idle="true">
        {elsewhere && <button type="button" className="primary" onClick={() => agent.takeBack()}>Take the call back</button>}
        <button type="button" className={elsewhere ? "button" : "primary"} onClick={onStart}>
          {!elsewhere && <Icon name="microphone" />}
          {call.sessionId === null ? "Start talking" : elsewhere ? "Start a new call" : "Start again"}
        </button>
        <Chooser choice={choice} choose={choose} />
      </div>
    );
  }
  const muted = microphone === "muted";
  const busy = state === "speaking" || state === "thinking" || state === "calling_tool";
  return (
    <div className="controls" role="group" aria-label="Call">
      <Round icon="stop" label="Stop speaking (Esc)" disabled={!busy} onClick={() => agent.interrupt()} />
      {microphone === "off" ? (
        <button type="button" className="mic" aria-label="Talk" title="Go on by voice (Space)" disabled={connection !== "connected"} onClick={() => void agent.startVoice().catch(() => undefined)}>
          <Icon name="microphone" size={26} />
        </button>
      ) : (
        <button type="button" className="mic" aria-label={muted ? "Unmute" : "Mute"} title={muted ? "Unmute (M)" : "Mute (M)"} aria-pressed={muted} disabled={microphone === "asking"} onClick={() => agent.mute(!muted)}>
          <Icon name={muted ? "muted" : "microphone"} size={26} />
        </button>
      )}
      {microphone !== "off" && <Round icon="keyboard" label="Go on in text" disabled={microphone === "asking"} onClick={() => agent.endVoice()} />}
      <Round icon="end" label="End the call" onClick={() => agent.end()} />
    </div>
  );
}

/** Whose loudspeaker is off: a call outlives this room. */
const SILENCED = new WeakSet<UseVoiceAgent["agent"]>();

/** The agent's voice on and off; with it off, the conversation goes on in writing. */
export function Loudspeaker({ call: { agent } }: { call: UseVoiceAgent }): ReactElement {
  const [silent, setSilent] = useState(SILENCED.has(agent));
  const toggle = (): void => {
    agent.setVolume(silent ? 1 : 0);
    SILENCED[silent ? "delete" : "add"](agent);
    setSilent(!silent);
  };
  return (
    <button type="button" className="quiet" aria-label="Silence the agent" title={silent ? "Loudspeaker off" : "Loudspeaker on"} aria-pressed={silent} onClick={toggle}>
      <Icon name={silent ? "silent" : "speaker"} />
    </button>
  );
}
