/** Start, mute, stop, end: the buttons under the thumb. */
import { type ReactElement, useState } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { Icon, type IconName } from "../icons";

function Round({ icon, label, pressed, onClick }: { icon: IconName; label: string; pressed?: boolean; onClick: () => void }): ReactElement {
  return (
    <button type="button" className="round" aria-label={label} title={label} aria-pressed={pressed} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

export function Controls({ call, onStart }: { call: UseVoiceAgent; onStart: () => void }): ReactElement {
  const { agent, connection, microphone, state } = call;
  const [silent, setSilent] = useState(false);
  if (connection === "idle" || connection === "closed") {
    return (
      <div className="controls">
        <button type="button" className="primary" onClick={onStart}>
          <Icon name="microphone" />
          {connection === "closed" ? "Start again" : "Start talking"}
        </button>
      </div>
    );
  }
  const muted = microphone === "muted";
  const busy = state === "speaking" || state === "thinking" || state === "calling_tool";
  const toggleSpeaker = (): void => {
    agent.setVolume(silent ? 1 : 0);
    setSilent(!silent);
  };
  return (
    <div className="controls" role="group" aria-label="Call">
      <Round icon={silent ? "silent" : "speaker"} label={silent ? "Loudspeaker off" : "Loudspeaker on"} pressed={silent} onClick={toggleSpeaker} />
      {microphone !== "off" && (
        <button type="button" className="talk" aria-label={muted ? "Unmute" : "Mute"} title={muted ? "Unmute (M)" : "Mute (M)"} aria-pressed={muted} disabled={microphone === "asking"} onClick={() => agent.mute(!muted)}>
          <Icon name={muted ? "muted" : "microphone"} size={26} />
        </button>
      )}
      {busy ? <Round icon="stop" label="Stop speaking (Esc)" onClick={() => agent.interrupt()} /> : <Round icon="end" label="End the call" onClick={() => agent.end()} />}
    </div>
  );
}
