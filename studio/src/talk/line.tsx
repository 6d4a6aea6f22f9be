/** The state of the line in words: when the next try is due, and afterwards in a sentence what became of it. */
import { type ReactElement, useEffect, useState } from "react";
import type { Interruption, UseVoiceAgent } from "voxbridge/react";

/** Long enough to be read twice. */
const NOTICE_MS = 12_000;
const TICK_MS = 250;

/** Not in a live region: a number that changes each second would be read out each second. */
export function NextTry({ call, interruption }: { call: UseVoiceAgent; interruption: Interruption }): ReactElement {
  const { attempt, nextTryAt } = interruption;
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const seconds = nextTryAt === null ? 0 : Math.ceil((nextTryAt - now) / 1000);
  const words = nextTryAt === null || seconds <= 0 ? `Try ${attempt} is under way` : `Try ${attempt} in ${seconds} s`;
  return (
    <p className="next-try">
      <span>{words}</span>
      <button type="button" className="button" disabled={nextTryAt === null} onClick={() => call.agent.tryNow()}>Try now</button>
    </p>
  );
}

export function News({ call }: { call: UseVoiceAgent }): ReactElement | null {
  const { agent, notice } = call;
  useEffect(() => {
    if (notice === null) return;
    const timer = setTimeout(() => agent.clearNotice(), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [agent, notice]);
  return notice === null || call.state === "restoring" ? null : <p className="news">{notice.text}</p>;
}
