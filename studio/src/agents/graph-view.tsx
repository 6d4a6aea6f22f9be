/** A pipeline as a small drawing: stages as boxes, ways as arrows. Owns pixels; who stands where is `graph`'s. */
import type { ReactElement } from "react";
import { agentName } from "../words";
import type { Stage } from "./api";
import { graphOf, type Placed, told, type Way } from "./graph";

const WIDE = 116;
const TALL = 52;
const ACROSS = 36;
const DOWN = 22;
/** Room for ways that go over or under the boxes. */
const BOW = 26;

/** `above` is the room for ways over the boxes. */
function corner({ column, row }: Placed, above: number): { x: number; y: number } {
  return { x: 2 + column * (WIDE + ACROSS), y: above + row * (TALL + DOWN) };
}

function path({ from, to, kind }: Way, above: number): string {
  const a = corner(from, above);
  const b = corner(to, above);
  if (kind === "step") {
    const [y1, y2, x1, x2] = [a.y + TALL / 2, b.y + TALL / 2, a.x + WIDE, b.x - 3];
    const half = (x1 + x2) / 2;
    return `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}`;
  }
  const over = kind === "leap";
  const edge = over ? 0 : TALL;
  const bow = over ? 4 : Math.max(a.y, b.y) + TALL + BOW - 4;
  const [x1, x2] = [a.x + WIDE * (over ? 0.6 : 0.4), b.x + WIDE * (over ? 0.4 : 0.6)];
  return `M${x1} ${a.y + edge}C${x1} ${bow} ${x2} ${bow} ${x2} ${b.y + edge + (over ? -3 : 3)}`;
}

export function GraphView({ stages }: { stages: readonly Stage[] }): ReactElement {
  const { places, ways, columns, rows } = graphOf(stages);
  const above = ways.some(({ kind }) => kind === "leap") ? BOW : 4;
  const width = columns * WIDE + (columns - 1) * ACROSS + 4;
  const height = above + rows * TALL + (rows - 1) * DOWN + (ways.some(({ kind }) => kind === "return") ? BOW : 4);
  return (
    <div className="graph" tabIndex={0} role="group" aria-label="Stages">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={told(stages)}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M1 1 7 4 1 7" fill="none" stroke="context-stroke" strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" />
          </marker>
        </defs>
        {ways.map((way) => (
          <path key={`${way.from.stage.phase}-${way.to.stage.phase}`} className="graph-way" data-kind={way.kind} d={path(way, above)} markerEnd="url(#arrow)" />
        ))}
        {places.map((place, index) => {
          const { x, y } = corner(place, above);
          return (
            <g key={place.stage.phase} className="graph-stage" data-first={index === 0}>
              <rect x={x} y={y} width={WIDE} height={TALL} rx="12" />
              <text x={x + WIDE / 2} y={y + 22} className="graph-agent">{short(agentName(place.stage.agent), 15)}</text>
              <text x={x + WIDE / 2} y={y + 39} className="graph-phase">{short(place.stage.phase, 18)}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function short(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
