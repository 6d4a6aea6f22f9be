/** The last turn's latency, stage by stage, from the end of the person's speech to the first sound heard. */
import { type CSSProperties, type ReactElement, useState } from "react";
import { type Latency, STAMPS } from "voxbridge/react";
import { duration, STAGE_WORDS } from "../words";

interface Stage {
  name: string;
  from: number;
  to: number;
}

/** Stages between the stamps that the turn had, in order of time. */
export function stages(latency: Latency): Stage[] {
  const stamped = STAMPS.flatMap((stamp) => {
    const at = latency[stamp];
    return at === undefined ? [] : [{ name: STAGE_WORDS[stamp], at }];
  }).sort((a, b) => a.at - b.at);
  return stamped.map(({ name, at }, i) => ({ name, from: stamped[i - 1]?.at ?? 0, to: at }));
}

/** In ms, so that the figures of a column compare; a stage that took very long would not fit. */
export function inColumn(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : duration(ms);
}

export function Waterfall({ latency }: { latency: Latency }): ReactElement {
  const bars = stages(latency);
  // On a phone the captions need the space; the sum stays in sight.
  const [roomy] = useState(() => matchMedia("(min-width: 861px)").matches);
  const total = Math.max(1, bars.at(-1)?.to ?? 1);
  const style = ({ from, to }: Stage): CSSProperties => ({ insetInlineStart: `${(from / total) * 100}%`, inlineSize: `max(3px, ${((to - from) / total) * 100}%)` });
  return (
    <details className="waterfall" open={roomy}>
      <summary>
        <span>Last turn</span>
        <strong>{duration(total)}</strong>
      </summary>
      <ol aria-label="Stages after the end of your speech">
        {bars.map((stage) => (
          <li key={stage.name} title={`${stage.name}: from ${duration(stage.from)} to ${duration(stage.to)}`}>
            <span className="stage-name">{stage.name}</span>
            <span className="stage-track" aria-hidden="true">
              <span className="stage-bar" style={style(stage)} />
            </span>
            <span className="stage-ms">{inColumn(stage.to - stage.from)}</span>
          </li>
        ))}
      </ol>
      <p className="axis" aria-hidden="true">
        <span>0</span>
        <span>ms after you stopped speaking</span>
        <span>{Math.round(total)}</span>
      </p>
    </details>
  );
}
