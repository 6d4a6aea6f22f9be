/** The gaps of a session in words, each with its why. */
import type { ReactElement } from "react";
import { duration } from "../words";
import type { Gap } from "./gaps";

interface InterruptionsProps {
  gaps: readonly Gap[];
  /** The one that was asked about last. */
  open: number | null;
  onGo: (gap: Gap) => void;
}

export function Interruptions({ gaps, open, onGo }: InterruptionsProps): ReactElement | null {
  if (gaps.length === 0) return null;
  return (
    <section className="panel interruptions" aria-label="Interruptions">
      <h2>{gaps.length === 1 ? "1 interruption" : `${gaps.length} interruptions`}</h2>
      <ul>
        {gaps.map((gap) => (
          <li key={`${gap.index}-${gap.kind}`}>
            <button type="button" className="gap-go" onClick={() => onGo(gap)}>
              <span className="transcript-time">{duration(gap.from)}</span>
              <b>{gap.title}</b>
              <span>{gap.to > gap.from ? duration(gap.to - gap.from) : ""}</span>
            </button>
            <details key={open === gap.index ? "asked" : "quiet"} open={open === gap.index}>
              <summary>Why?</summary>
              {gap.why.map((line) => <p key={line}>{line}</p>)}
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}
