/** Draws lanes, waveforms, spans, gaps, marks and the playhead. What is out of view costs nothing; marks of one column are drawn once. */
import type { colours } from "../theme";
import type { Waveform } from "./api";
import type { Gap } from "./gaps";
import { AXIS, BOXES, boxOf, CAPTION, GUTTER, HEIGHT, laneOf, MARGIN, rowOf, xOf } from "./geometry";
import { type LaneName, type Span, ticks, type Timeline, type View } from "./layout";
import { peak, type Waves } from "./waves";

type Palette = ReturnType<typeof colours>;

export interface Scene {
  timeline: Timeline;
  gaps: readonly Gap[];
  /** The whole session, and finer for the view where that is there. */
  waves: Waves;
  close: Waves;
  view: View;
  playhead: number;
  hover: number | null;
  selected: number;
  width: number;
  font: string;
}

export function tickLabel(ms: number, span: number): string {
  if (span < 3000) return `${Math.round(ms)} ms`;
  if (span < 90_000) return `${(ms / 1000).toFixed(span < 20_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

export function draw(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
  const { width } = scene;
  context.clearRect(0, 0, width, HEIGHT);
  drawLanes(context, scene, palette);
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, width - GUTTER, HEIGHT);
  context.clip();
  drawVoice(context, "You", scene, palette);
  drawVoice(context, "Agent", scene, palette);
  for (const span of scene.timeline.spans) if (span.lane !== "You" && span.lane !== "Agent") drawSpan(context, span, scene, palette);
  drawCaptions(context, "You", scene, palette);
  drawCaptions(context, "Agent", scene, palette);
  for (const gap of scene.gaps) drawGap(context, gap, scene, palette);
  drawMarks(context, scene, palette);
  drawPlayhead(context, scene, palette);
  context.restore();
}

function drawLanes(context: CanvasRenderingContext2D, { view, width, font, playhead }: Scene, palette: Palette): void {
  context.font = `500 12px ${font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { name, top, height } of BOXES) {
    const band = name === "You" || name === "Agent" ? height - CAPTION : height;
    context.fillStyle = palette.muted;
    context.fillText(name, 0, top + band / 2);
    context.fillStyle = palette.line;
    context.globalAlpha = 0.35;
    context.beginPath();
    context.roundRect(GUTTER, top, width - GUTTER - MARGIN, band, 6);
    context.fill();
    context.globalAlpha = 1;
  }
  context.font = `400 11px ${font}`;
  context.textAlign = "center";
  for (const at of ticks(view, width - GUTTER)) {
    const x = xOf(at, { view, width });
    context.fillStyle = palette.line;
    context.fillRect(Math.round(x), AXIS, 1, HEIGHT - AXIS - 8);
    if (Math.abs(x - xOf(playhead, { view, width })) < 48) continue;
    context.fillStyle = palette.muted;
    context.fillText(tickLabel(at, view.to - view.from), Math.max(x, GUTTER + 12), AXIS / 2);
  }
}

/** A voice: where there is a waveform, that on a quiet ground; else the spans of speech themselves. */
function drawVoice(context: CanvasRenderingContext2D, lane: "You" | "Agent", scene: Scene, palette: Palette): void {
  const whole = lane === "You" ? scene.waves.in : scene.waves.out;
  const close = lane === "You" ? scene.close.in : scene.close.out;
  const there = whole !== null && whole.low.length > 0;
  for (const span of scene.timeline.spans) {
    if (span.lane !== lane) continue;
    if (there && (span.kind === "speech" || span.kind === "speaking" || span.kind === "cut")) drawGround(context, span, scene, palette);
    else drawSpan(context, span, scene, palette);
  }
  if (there) {
    context.fillStyle = lane === "You" ? palette.ink : palette.accent;
    drawWave(context, lane, whole, close, scene);
  }
}

function drawWave(context: CanvasRenderingContext2D, lane: LaneName, whole: Waveform, close: Waveform | null, { view, width }: Scene): void {
  const { top, height } = boxOf(lane);
  const middle = top + (height - CAPTION) / 2;
  const reach = (height - CAPTION - 6) / 2;
  const column = (view.to - view.from) / (width - GUTTER - MARGIN);
  const fine = close !== null && close.low.length > 0 && close.from_ms <= view.from + column && close.to_ms >= Math.min(view.to, whole.to_ms) - 2 * column;
  const wave = fine ? close : whole;
  for (let x = GUTTER; x < width - MARGIN; x++) {
    const from = view.from + (x - GUTTER) * column;
    if (from > wave.to_ms) break;
    const found = peak(wave, from, from + column);
    if (found === null) continue;
    // Quiet speech is seen too: loudness is drawn closer to how it is heard.
    const high = (Math.max(0, found[1]) / 127) ** 0.7 * reach;
    const low = (Math.max(0, -found[0]) / 127) ** 0.7 * reach;
    context.fillRect(x, middle - high, 1, Math.max(1, high + low));
  }
}

function drawGround(context: CanvasRenderingContext2D, span: Span, scene: Scene, palette: Palette): void {
  const placed = place(span, scene);
  if (placed === null) return;
  const { left, right, box } = placed;
  const { top, height } = rowOf(span);
  context.fillStyle = palette.soft;
  context.globalAlpha = 0.8;
  context.beginPath();
  context.roundRect(left, top, box, height, Math.min(5, box / 2));
  context.fill();
  context.globalAlpha = 1;
  if (span.kind === "cut" && box > 12) drawCut(context, right, top, height, palette);
}

function place({ from, to }: Span, scene: Scene): { left: number; right: number; box: number } | null {
  if (to < scene.view.from || from > scene.view.to) return null;
  const left = Math.max(xOf(from, scene), GUTTER - 20);
  const right = Math.min(xOf(to, scene), scene.width + 20);
  return { left, right, box: Math.max(2, right - left) };
}

function drawSpan(context: CanvasRenderingContext2D, span: Span, scene: Scene, palette: Palette): void {
  const placed = place(span, scene);
  if (placed === null) return;
  const { left, right, box } = placed;
  const { top, height } = rowOf(span);
  const fills: Record<Span["kind"], string> = {
    speech: palette.ink, typed: palette.muted, thinking: palette.accent, speaking: palette.accent, cut: palette.accent,
    tool: palette.soft, task: palette.soft, failed: palette.danger, stage: palette.accent, held: palette.soft, connected: palette.soft, heard: palette.soft, handoff: palette.accent,
  };
  context.globalAlpha = span.kind === "thinking" ? 0.35 : span.kind === "stage" ? 0.45 + 0.09 * span.row : 1;
  // A short call is a line of its own colour: there is no room for a ground and an edge.
  context.fillStyle = box <= 3 && span.lane === "Tools" && span.kind !== "failed" ? palette.accent : fills[span.kind];
  context.beginPath();
  context.roundRect(left, top, box, height, Math.min(span.kind === "stage" ? 1 : 5, box / 2));
  context.fill();
  context.globalAlpha = 1;
  if (span.kind === "cut" && box > 12) drawCut(context, right, top, height, palette);
  if (span.lane === "You" || span.lane === "Agent" || span.lane === "Latency") return;
  if (span.kind !== "failed" && box > 3) outline(context, palette);
  const inside = box >= 40;
  const room = inside ? box - 12 : span.lane === "Tools" && scene.view.to - scene.view.from < 60_000 ? 120 : 0;
  if (room < 24) return;
  context.font = `500 11px ${scene.font}`;
  context.textAlign = "left";
  context.fillStyle = inside && (span.kind === "failed" || span.kind === "handoff") ? palette.surface : palette.ink;
  context.fillText(shorten(context, span.label, room), inside ? left + 6 : right + 5, top + height / 2 + 0.5);
}

function outline(context: CanvasRenderingContext2D, { accent }: Palette): void {
  context.strokeStyle = accent;
  context.lineWidth = 1;
  context.stroke();
}

/** What was said, below where it was said, as long as there is room before the next. */
function drawCaptions(context: CanvasRenderingContext2D, lane: "You" | "Agent", scene: Scene, palette: Palette): void {
  const { top, height } = boxOf(lane);
  const said = scene.timeline.spans.filter((span) => span.lane === lane && span.kind !== "thinking" && span.label !== "" && span.from <= scene.view.to);
  context.font = `500 12px ${scene.font}`;
  context.textAlign = "left";
  context.fillStyle = palette.ink;
  for (const [i, span] of said.entries()) {
    const next = said[i + 1];
    const until = Math.min(next === undefined ? scene.width : xOf(next.from, scene) - 8, scene.width - MARGIN);
    const left = Math.max(xOf(span.from, scene), GUTTER + 2);
    if (until - left < 44) continue;
    context.fillText(shorten(context, span.label, until - left), left, top + height - CAPTION / 2 + 1);
  }
}

/** The text, or as much of it as `room` pixels hold with an ellipsis. */
function shorten(context: CanvasRenderingContext2D, text: string, room: number): string {
  // Nothing is shown of a text that is far too long beyond this, so it is not measured either.
  const shown = text.slice(0, Math.ceil(room / 3));
  const wide = context.measureText(shown).width;
  if (wide <= room) return shown === text ? text : `${shown}…`;
  let length = Math.floor((shown.length * room) / wide);
  while (length > 0 && context.measureText(`${shown.slice(0, length)}…`).width > room) length -= 1;
  return length === 0 ? "" : `${shown.slice(0, length).trimEnd()}…`;
}

/** Where the person cut in: a notch in the end of the speech. */
function drawCut(context: CanvasRenderingContext2D, right: number, y: number, height: number, { danger }: Palette): void {
  context.fillStyle = danger;
  for (let i = 0; i < 4; i++) {
    context.beginPath();
    context.moveTo(right + 1, y + (i * height) / 4);
    context.lineTo(right - 5, y + ((i + 0.5) * height) / 4);
    context.lineTo(right + 1, y + ((i + 1) * height) / 4);
    context.fill();
  }
}

/** Hatched, so that it is told from what went on by more than its colour. */
function drawGap(context: CanvasRenderingContext2D, gap: Gap, scene: Scene, palette: Palette): void {
  if (gap.to < scene.view.from || gap.from > scene.view.to) return;
  const { top, height } = boxOf(laneOf(gap));
  const tall = gap.kind === "model" ? height - CAPTION : height;
  const middle = (xOf(gap.from, scene) + xOf(gap.to, scene)) / 2;
  const box = Math.max(6, xOf(gap.to, scene) - xOf(gap.from, scene));
  const left = middle - box / 2;
  context.save();
  context.beginPath();
  context.roundRect(left, top, box, tall, 3);
  context.clip();
  context.fillStyle = palette.surface;
  context.fillRect(left, top, box, tall);
  context.strokeStyle = palette.danger;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let x = left - tall; x < left + box; x += 6) {
    context.moveTo(x, top + tall);
    context.lineTo(x + tall, top);
  }
  context.stroke();
  context.restore();
  context.strokeStyle = palette.danger;
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(left, top, box, tall, 3);
  context.stroke();
}

function drawMarks(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
  const { timeline, view, selected, width } = scene;
  const { top, height } = boxOf("Events");
  let column = Number.NaN;
  let special = false;
  for (const { at, index, failed } of timeline.marks) {
    if (at < view.from || at > view.to) continue;
    const x = Math.round(xOf(at, { view, width }));
    const wanted = failed || index === selected;
    if (x === column && (special || !wanted)) continue;
    [column, special] = [x, wanted];
    context.fillStyle = index === selected ? palette.accent : failed ? palette.danger : palette.muted;
    const margin = wanted ? 1 : 4;
    context.fillRect(x - 1, top + margin, 2, height - 2 * margin);
  }
}

function drawPlayhead(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
  if (scene.hover !== null) {
    context.fillStyle = palette.muted;
    context.globalAlpha = 0.5;
    context.fillRect(Math.round(xOf(scene.hover, scene)), AXIS, 1, HEIGHT - AXIS - 8);
    context.globalAlpha = 1;
  }
  const x = Math.round(xOf(scene.playhead, scene));
  context.fillStyle = palette.accent;
  context.fillRect(x - 1, AXIS - 4, 2, HEIGHT - AXIS - 2);
  context.beginPath();
  context.arc(x, AXIS - 5, 5, 0, 2 * Math.PI);
  context.fill();
}
