/** Talk: the first room. Owns the call's options and the arrangement of its parts. */
import { type ReactElement, useRef, useState } from "react";
import type { UseVoiceAgent, VoiceAgentOptions } from "voxbridge/react";
import { accessToken } from "../access";
import { WhySilent } from "../sessions/silences";
import { hint, STATE_WORDS } from "../words";
import { type Choice, optionsOf, remember, useChoice, wayOf } from "./choice";
import { Composer } from "./composer";
import { Controls, Loudspeaker } from "./controls";
import { Conversation } from "./conversation";
import { useKeys } from "./keys";
import { News, NextTry } from "./line";
import { Meter } from "./meter";
import { Modes } from "./modes";
import { Notices } from "./notices";
import { OrbView } from "./orb";
import { useReadiness } from "./readiness";
import { isWanted, Recorded, useRecording } from "./recorded";
import { Settings } from "./settings";
import { Waterfall } from "./waterfall";
import { Who } from "./who";

function Welcome({ choice }: { choice: Choice }): ReactElement {
  return (
    <div className="welcome">
      <h1>Talk to Voxbridge</h1>
      <p>Your browser will ask for the microphone. {wayOf(choice)} You can mute at any time.</p>
    </div>
  );
}

export function TalkRoom({ call }: { call: UseVoiceAgent }): ReactElement {
  const { agent } = call;
  const [options, setOptions] = useState<VoiceAgentOptions>({});
  const choice = useChoice();
  const readiness = useReadiness();
  const recording = useRecording();
  const field = useRef<HTMLInputElement>(null);
  // What goes wrong is in the snapshot, and shown from there.
  const start = (): void => void agent.start({ ...options, ...optionsOf(choice, true), token: accessToken(), microphone: true }).catch(() => undefined);
  useKeys(call, () => field.current?.focus(), start);
  const startInText = (text: string): void => {
    agent.start({ ...options, ...optionsOf(choice, false), token: accessToken(), microphone: false }).then(() => agent.sendText(text)).catch(() => undefined);
  };
  const fresh = call.state === "idle" && call.conversation.length === 0;
  return (
    <main className="room" data-fresh={fresh} data-state={call.state}>
      <section className="stage" aria-label="The agent">
        <OrbView agent={agent} state={call.state} />
        {fresh ? (
          <Welcome choice={choice} />
        ) : (
          <div className="status">
            <div role="status">
              <h1>{STATE_WORDS[call.state]}</h1>
              <p className="hint">{hint(call)}</p>
              <News call={call} />
              {call.sessionId !== null && (call.state === "thinking" || call.state === "calling_tool") && <WhySilent id={call.sessionId} />}
            </div>
            {call.interruption !== null && <NextTry call={call} interruption={call.interruption} />}
            <Who snapshot={call} />
            <Modes call={call} />
            <Meter agent={agent} snapshot={call} />
          </div>
        )}
        <Recorded fresh={fresh} wanted={isWanted(recording, options.record)} recorded={call.recorded} />
      </section>
      <Notices call={call} readiness={readiness} />
      {!fresh && <Conversation call={call} empty={call.microphone === "off" ? "Your conversation appears here." : "Captions of both of you appear here."} />}
      <Controls call={call} choice={choice} choose={remember} onStart={start} />
      <div className="compose-row">
        <Composer call={call} field={field} onStart={startInText} />
        <Loudspeaker call={call} />
        <Settings options={options} choose={setOptions} recording={recording} />
      </div>
      {call.latency !== null && <Waterfall latency={call.latency} />}
    </main>
  );
}
