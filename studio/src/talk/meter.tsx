/** The microphone's level, and whether speech is heard in it. The bar moves past React. */
import { type ReactElement, useEffect, useRef } from "react";
import type { Snapshot, VoiceAgent } from "voxbridge/react";

const SEGMENTS = 16;
/** The quietest that shows, in dB of full scale. */
const FLOOR_DB = -54;

export function Meter({ agent, snapshot }: { agent: VoiceAgent; snapshot: Snapshot }): ReactElement | null {
  const bar = useRef<HTMLSpanElement>(null);
  useEffect(
    () =>
      agent.levels.subscribe(({ input }) => {
        const share = input <= 0 ? 0 : Math.max(0, 1 - (20 * Math.log10(input)) / FLOOR_DB);
        bar.current?.style.setProperty("--lit", String(Math.round(share * SEGMENTS)));
      }),
    [agent],
  );
  const { microphone, state } = snapshot;
  if (microphone === "off" || microphone === "asking") return null;
  const speech = state === "user_speaking";
  const words = microphone === "muted" ? "Microphone muted" : state === "reconnecting" ? "What you say is kept for 5 s" : speech ? "Speech" : "Quiet";
  return (
    <p className="meter" data-speech={speech}>
      <span className="meter-bar" ref={bar} aria-hidden="true" />
      <span>{words}</span>
    </p>
  );
}
