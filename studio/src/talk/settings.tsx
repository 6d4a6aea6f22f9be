/** Microphone, sound and recording of a call, tucked away; they count from the next call on. */
import type { ReactElement } from "react";
import type { VoiceAgentOptions } from "voxbridge/react";
import { Icon } from "../icons";
import { isWanted, type Recording } from "./recorded";

interface SettingsProps {
  options: VoiceAgentOptions;
  recording: Recording;
  choose: (options: VoiceAgentOptions) => void;
}

export function Settings({ options, recording, choose }: SettingsProps): ReactElement {
  return (
    <>
      <button type="button" className="quiet settings-button" popoverTarget="settings" aria-label="Call settings" title="Call settings">
        <Icon name="settings" />
      </button>
      <div popover="auto" id="settings" className="popover" role="dialog" aria-label="Call settings">
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
        {recording !== "off" && (
          <fieldset>
            <legend>Recording</legend>
            <label className="choice">
              <input type="checkbox" checked={isWanted(recording, options.record)} onChange={(event) => choose({ ...options, record: event.target.checked })} />
              <span><b>Record the call</b><small>Both voices are kept, encrypted. Only if everybody who is heard agrees.</small></span>
            </label>
          </fieldset>
        )}
        <p className="popover-note">Used from the next call.</p>
      </div>
    </>
  );
}
