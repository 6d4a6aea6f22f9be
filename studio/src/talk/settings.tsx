/** The few choices of a call, tucked away; they count from the next call on. */
import type { ReactElement } from "react";
import type { Mode, VoiceAgentOptions } from "voxbridge/react";
import { Icon } from "../icons";

const MODES: [mode: Mode, name: string, what: string][] = [
  ["local", "Local models", "Listens, thinks and speaks on this installation."],
  ["echo", "Echo", "Sends your voice back: a test of the line."],
];

interface SettingsProps {
  options: VoiceAgentOptions;
  choose: (options: VoiceAgentOptions) => void;
}

export function Settings({ options, choose }: SettingsProps): ReactElement {
  return (
    <>
      <button type="button" className="quiet settings-button" popoverTarget="settings" aria-label="Call settings" title="Call settings">
        <Icon name="settings" />
      </button>
      <div popover="auto" id="settings" className="popover" role="dialog" aria-label="Call settings">
        <fieldset>
          <legend>Who answers</legend>
          {MODES.map(([mode, name, what]) => (
            <label key={mode} className="choice">
              <input type="radio" name="mode" checked={(options.mode ?? "local") === mode} onChange={() => choose({ ...options, mode })} />
              <span><b>{name}</b><small>{what}</small></span>
            </label>
          ))}
        </fieldset>
        <fieldset>
          <legend>Microphone and sound</legend>
          <label className="choice">
            <input type="checkbox" checked={options.pushToTalk === true} onChange={(event) => choose({ ...options, pushToTalk: event.target.checked })} />
            <span><b>Push to talk</b><small>Start muted; hold Space to speak.</small></span>
          </label>
          <label className="choice">
            <input type="checkbox" checked={options.directOutput === true} onChange={(event) => choose({ ...options, directOutput: event.target.checked })} />
            <span><b>Direct output</b><small>Less delay; use it with headphones, as echoes are cancelled less well.</small></span>
          </label>
        </fieldset>
        <p className="popover-note">Counts from the next call on.</p>
      </div>
    </>
  );
}
