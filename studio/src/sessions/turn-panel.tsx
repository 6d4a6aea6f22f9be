/** The latency of the turn under the playhead, stage by stage, in figures. */
import type { ReactElement } from "react";
import { inColumn, stages } from "../talk/waterfall";
import { duration } from "../words";
import type { Turn } from "./layout";

export function TurnPanel({ turns, at }: { turns: readonly Turn[]; at: number }): ReactElement | null {
  const turn = turns.findLast(({ from }) => from <= at + 0.5) ?? turns[0];
  if (turn === undefined) return null;
  const bars = stages(turn.latency);
  const total = Math.max(1, bars.at(-1)?.to ?? 1);
  return (
    <section className="panel turn" aria-label="Latency of the turn">
      <div className="details-head">
        <h2>Turn {turn.number}</h2>
        <strong>{duration(total)}</strong>
      </div>
      <ol className="turn-stages">
        {bars.map(({ name, from, to }) => (
          <li key={name}>
            <span className="stage-name">{name}</span>
            <span className="stage-track" aria-hidden="true">
              <span className="stage-bar" style={{ insetInlineStart: `${(from / total) * 100}%`, inlineSize: `max(3px, ${((to - from) / total) * 100}%)` }} />
            </span>
            <span className="stage-ms">{inColumn(to - from)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
