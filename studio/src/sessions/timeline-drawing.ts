/** Draws lanes, spans, marks and the playhead. Owns the geometry in pixels; 10,000 marks cost one pass over the columns. */
import type { colours } from "../theme";
import { LANES, type LaneName, type Span, ticks, type Timeline, type View } from "./layout";

export const GUTTER = 76;
export const AXIS = 26;
const TALL = 44;
const LOW = 22;
const GAP = 8;

interface Lane {
  name: LaneName;
  top: number;
  height: number;
}

export const LANE_BOXES: readonly Lane[] = LANES.reduce<Lane[]>((boxes, name, i) => {
  const before = boxes.at(-1);
  const top = before === undefined ? AXIS + 4 : before.top + before.height + (i === 3 ? 18 : GAP);
  return [...boxes, { name, top, height: i < 3 ? TALL : LOW }];
}, []);
export const HEIGHT = (LANE_BOXES.at(-1)?.top ?? 0) + LOW + 10;

type Palette = ReturnType<typeof colours>;

export interface Scene {
  timeline: Timeline;
  view: View;
  playhead: number;
  selected: number;
  width: number;
  font: string;
}

export function xOf(at: number, { view, width }: Pick<Scene, "view" | "width">): number {
  return GUTTER + ((at - view.from) / (view.to - view.from)) * (width - GUTTER - 12);
}

export function timeOf(x: number, { view, width }: Pick<Scene, "view" | "width">): number {
  return view.from + ((x - GUTTER) / (width - GUTTER - 12)) * (view.to - view.from);
}

export function tickLabel(ms: number, span: number): string {
  return span < 3000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(span < 20_000 ? 1 : 0)} s`;
}

export function draw(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
  const { width } = scene;
  context.clearRect(0, 0, width, HEIGHT);
  drawLanes(context, scene, palette);
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, width - GUTTER, HEIGHT);
  context.clip();
  for (const span of scene.timeline.spans) drawSpan(context, span, scene, palette);
  drawMarks(context, scene, palette);
  drawPlayhead(context, scene, palette);
  context.restore();
}

function drawLanes(context: CanvasRenderingContext2D, { view, width, font, playhead }: Scene, palette: Palette): void {
  context.font = `500 12px ${font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { name, top, height } of LANE_BOXES) {
    context.fillStyle = palette.muted;
    context.fillText(name, 0, top + height / 2);
    context.fillStyle = palette.line;
    context.globalAlpha = 0.35;
    context.beginPath();
    context.roundRect(GUTTER, top, width - GUTTER - 12, height, 6);
    context.fill();
    context.globalAlpha = 1;
  }
  context.font = `400 11px ${font}`;
  context.textAlign = "center";
  for (const at of ticks(view, width - GUTTER)) {
    const x = xOf(at, { view, width });
    context.fillStyle = palette.line;
    context.fillRect(Math.round(x), AXIS, 1, HEIGHT - AXIS - 8);
    if (Math.abs(x - xOf(playhead, { view, width })) < 44) continue;
    context.fillStyle = palette.muted;
    context.fillText(tickLabel(at, view.to - view.from), Math.max(x, GUTTER + 12), AXIS / 2);
  }
}

function drawSpan(context: CanvasRenderingContext2D, span: Span, scene: Scene, palette: Palette): void {
  const lane = LANE_BOXES.find(({ name }) => name === span.lane);
  if (lane === undefined || span.to < scene.view.from || span.from > scene.view.to) return;
  const left = Math.max(xOf(span.from, scene), GUTTER - 20);
  const right = Math.min(xOf(span.to, scene), scene.width + 20);
  const box = Math.max(4, right - left);
  const y = lane.top + (span.kind === "thinking" ? lane.height / 2 - 3 : 5);
  const height = span.kind === "thinking" ? 6 : lane.height - 10;
  const fills: Record<Span["kind"], string> = {
    speech: palette.ink, typed: palette.muted, thinking: palette.accent, speaking: palette.accent, cut: palette.accent, tool: palette.soft, task: palette.soft, failed: palette.danger,
  };
  context.globalAlpha = span.kind === "thinking" ? 0.35 : 1;
  context.fillStyle = fills[span.kind];
  context.beginPath();
  context.roundRect(left, y, box, height, Math.min(5, box / 2));
  context.fill();
  context.globalAlpha = 1;
  if (span.kind === "cut") drawCut(context, right, y, height, palette);
  if (span.label === "" || span.kind === "thinking") return;
  context.font = `500 12px ${scene.font}`;
  context.textAlign = "left";
  const isTool = span.lane === "Tools";
  if (isTool) outline(context, palette);
  const beside = isTool && box < 90;
  const room = beside ? 120 : box - 16;
  if (room < 24) return;
  context.fillStyle = isTool ? palette.ink : palette.surface;
  context.fillText(shorten(context, span.label, room), beside ? right + 6 : left + 8, y + height / 2 + 0.5);
}

function outline(context: CanvasRenderingContext2D, { accent }: Palette): void {
  context.strokeStyle = accent;
  context.lineWidth = 1;
  context.stroke();
}

/** The text, or as much of it as `room` pixels hold with an ellipsis. */
function shorten(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const share = room / context.measureText(text).width;
  let length = Math.floor(text.length * share);
  while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return length === 0 ? "" : `${text.slice(0, length).trimEnd()}…`;
}

/** Where the person cut in: a notch in the end of the speech. */
function drawCut(context: CanvasRenderingContext2D, right: number, y: number, height: number, { surface }: Palette): void {
  context.fillStyle = surface;
  for (let i = 0; i < 4; i++) {
    context.beginPath();
    context.moveTo(right + 1, y + (i * height) / 4);
    context.lineTo(right - 6, y + ((i + 0.5) * height) / 4);
    context.lineTo(right + 1, y + ((i + 1) * height) / 4);
    context.fill();
  }
}

function drawMarks(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
  const columns = new Set<number>();
  const { timeline, view, selected, width } = scene;
  for (const { lane: name, at, index, quiet } of timeline.marks) {
    if (at < view.from || at > view.to) continue;
    const laneIndex = LANES.indexOf(name);
    const lane = LANE_BOXES[laneIndex];
    if (lane === undefined) continue;
    const x = xOf(at, { view, width });
    const column = (laneIndex * 65_536 + Math.round(x)) * 2 + (quiet ? 1 : 0);
    if (columns.has(column) && index !== selected) continue;
    columns.add(column);
    context.fillStyle = index === selected ? palette.accent : palette.muted;
    context.globalAlpha = quiet ? 0.45 : 1;
    const margin = quiet ? 7 : 4;
    context.fillRect(Math.round(x) - 1, lane.top + margin, 2, lane.height - 2 * margin);
    context.globalAlpha = 1;
  }
}

function drawPlayhead(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
  const x = Math.round(xOf(scene.playhead, scene));
  context.fillStyle = palette.accent;
  context.fillRect(x - 1, AXIS - 4, 2, HEIGHT - AXIS - 2);
  context.beginPath();
  context.arc(x, AXIS - 5, 5, 0, 2 * Math.PI);
  context.fill();
}

/** The index of the event whose mark is nearest to a point, within 8 pixels; -1 if none is. */
export function markAt(x: number, y: number, { timeline, view, width }: Scene): number {
  const lane = LANE_BOXES.find(({ top, height }) => y >= top - 4 && y <= top + height + 4);
  let found = -1;
  let nearest = 8;
  for (const mark of timeline.marks) {
    if (mark.lane !== lane?.name) continue;
    const distance = Math.abs(xOf(mark.at, { view, width }) - x);
    if (distance < nearest) [nearest, found] = [distance, mark.index];
  }
  return found;
}
