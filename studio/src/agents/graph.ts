/** Where the stages of a pipeline stand, and which ways lead between them. Pure. */
import type { Stage } from "./api";

export interface Placed {
  stage: Stage;
  column: number;
  row: number;
}

export interface Way {
  from: Placed;
  to: Placed;
  /** To the next column, over columns between, or against the order of the stages. */
  kind: "step" | "leap" | "return";
}

export interface Graph {
  places: Placed[];
  ways: Way[];
  columns: number;
  rows: number;
}

/** Each stage one column after the latest stage that leads to it; ways against the order of the file place nothing. */
export function graphOf(stages: readonly Stage[]): Graph {
  const order = new Map(stages.map(({ phase }, index) => [phase, index]));
  const columns = stages.map(() => 0);
  for (const [index, { next }] of stages.entries()) {
    for (const phase of next) {
      const to = order.get(phase);
      if (to !== undefined && to > index) columns[to] = Math.max(columns[to] ?? 0, (columns[index] ?? 0) + 1);
    }
  }
  const heights: number[] = [];
  const places = stages.map((stage, index): Placed => {
    const column = columns[index] ?? 0;
    const row = heights[column] ?? 0;
    heights[column] = row + 1;
    return { stage, column, row };
  });
  const ways = places.flatMap((from, index): Way[] =>
    from.stage.next.flatMap((phase) => {
      const at = order.get(phase);
      const to = at === undefined ? undefined : places[at];
      if (at === undefined || to === undefined) return [];
      return [{ from, to, kind: at <= index ? "return" : to.column - from.column > 1 ? "leap" : "step" }];
    }),
  );
  return { places, ways, columns: Math.max(0, ...columns) + 1, rows: Math.max(1, ...heights.map((height) => height)) };
}

/** The same in words, for who cannot see it. */
export function told(stages: readonly Stage[]): string {
  const [first] = stages;
  if (first === undefined) return "No stages.";
  const steps = stages.flatMap(({ phase, next }) => (next.length === 0 ? [] : [`${phase} leads to ${next.join(" or ")}`]));
  return `Begins with ${first.phase}${steps.length === 0 ? "" : `; ${steps.join("; ")}`}.`;
}
