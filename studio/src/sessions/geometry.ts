/** Where a time and a lane are in pixels. Pure. */
import { LANES, type LaneName, type Mark, type Span, type Timeline, TOOL_ROWS, type View } from "./layout";
import type { Gap } from "./gaps";

export const GUTTER = 76;
export const AXIS = 26;
/** At the right edge. */
export const MARGIN = 12;
export const CAPTION = 20;
export const ROW = 19;
export const STAGE = 4;
const GAP = 8;
const NEAR = 8;
const HEIGHTS: Record<LaneName, number> = { You: 36 + CAPTION, Agent: 36 + CAPTION, Who: 24, Tools: TOOL_ROWS * ROW + 2, Latency: 7 * STAGE + 4, Worker: 24, Client: 24, Events: 20 };

export interface Box {
  name: LaneName;
  top: number;
  height: number;
}

export const BOXES: readonly Box[] = LANES.reduce<Box[]>((boxes, name) => {
  const before = boxes.at(-1);
  return [...boxes, { name, top: before === undefined ? AXIS + 4 : before.top + before.height + GAP, height: HEIGHTS[name] }];
}, []);
export const HEIGHT = (BOXES.at(-1)?.top ?? 0) + HEIGHTS.Events + 10;

export interface Frame {
  view: View;
  width: number;
}

export function xOf(at: number, { view, width }: Frame): number {
  return GUTTER + ((at - view.from) / (view.to - view.from)) * (width - GUTTER - MARGIN);
}

export function timeOf(x: number, { view, width }: Frame): number {
  return view.from + ((x - GUTTER) / (width - GUTTER - MARGIN)) * (view.to - view.from);
}

export function boxOf(name: LaneName): Box {
  return BOXES.find((box) => box.name === name) ?? { name, top: 0, height: 0 };
}

/** Where a span lies from top to bottom. */
export function rowOf({ lane, row, kind }: Span): { top: number; height: number } {
  const { top, height } = boxOf(lane);
  if (lane === "Tools") return { top: top + 1 + row * ROW, height: ROW - 2 };
  if (lane === "Latency") return { top: top + 2 + row * STAGE, height: STAGE - 1 };
  if (lane === "You" || lane === "Agent") {
    const band = height - CAPTION;
    return kind === "thinking" ? { top: top + band / 2 - 3, height: 6 } : { top: top + 4, height: band - 8 };
  }
  return { top: top + 3, height: height - 6 };
}

function laneAt(y: number): LaneName | undefined {
  return BOXES.find(({ top, height }) => y >= top - GAP / 2 && y < top + height + GAP / 2)?.name;
}

export interface Hit {
  mark?: Mark;
  span?: Span;
  gap?: Gap;
}

/** What lies at a point: the nearest mark within 8 pixels in the lane of events, else a gap, else the shortest span. */
export function hitAt(x: number, y: number, { spans, marks }: Timeline, found: readonly Gap[], frame: Frame): Hit {
  const lane = laneAt(y);
  if (lane === undefined || x < GUTTER) return {};
  const reach = ((frame.view.to - frame.view.from) * NEAR) / Math.max(1, frame.width - GUTTER - MARGIN);
  const at = timeOf(x, frame);
  if (lane === "Events") {
    let mark: Mark | undefined;
    let nearest = reach;
    for (const candidate of marks) {
      const distance = Math.abs(candidate.at - at);
      if (distance < nearest) [nearest, mark] = [distance, candidate];
    }
    return mark === undefined ? {} : { mark };
  }
  const gap = lane === "Worker" || lane === "Client" || lane === "Agent" ? found.find((one) => laneOf(one) === lane && one.from - reach <= at && at <= one.to + reach) : undefined;
  if (gap !== undefined) return { gap };
  let span: Span | undefined;
  for (const candidate of spans) {
    if (candidate.lane !== lane || at < candidate.from - reach / 4 || at > candidate.to + reach / 4) continue;
    const { top, height } = rowOf(candidate);
    const inRow = lane !== "Tools" && lane !== "Latency" ? true : y >= top - 1 && y <= top + height + 1;
    if (inRow && (span === undefined || candidate.to - candidate.from < span.to - span.from)) span = candidate;
  }
  return span === undefined ? {} : { span };
}

export function laneOf(gap: Gap): LaneName {
  return gap.kind === "worker" ? "Worker" : gap.kind === "client" ? "Client" : "Agent";
}
