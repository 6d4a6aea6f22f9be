/** The timeline as a slider over time: canvas for the eyes, a value in words for a screen reader. */
import { type KeyboardEvent, type PointerEvent, type ReactElement, useEffect, useLayoutEffect, useRef, useState } from "react";
import { colours, onThemeChange } from "../theme";
import { duration } from "../words";
import type { LogEvent } from "./api";
import type { Gap } from "./gaps";
import { GUTTER, HEIGHT, type Hit, hitAt, timeOf, xOf } from "./geometry";
import { lastBefore, type Timeline, type View } from "./layout";
import { useZooming } from "./pointer";
import { draw } from "./timeline-drawing";
import { pan, reveal, zoom } from "./timeline-keys";
import { useCloseWaves, type Waves } from "./waves";

interface TimelineProps {
  id: string;
  events: readonly LogEvent[];
  timeline: Timeline;
  gaps: readonly Gap[];
  waves: Waves;
  playhead: number;
  selected: number;
  /** The playhead is at the newest moment, and goes on with it. */
  following: boolean;
  /** Move to a time, or to an event. */
  onMove: (at: number, selected?: number) => void;
  onGap: (gap: Gap) => void;
}

interface Hover {
  x: number;
  at: number;
  hit: Hit;
}

export function TimelineView({ id, events, timeline, gaps, waves, playhead, selected, following, onMove, onGap }: TimelineProps): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(800);
  const [chosen, setChosen] = useState<View | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const [themed, setThemed] = useState(0);
  const { end } = timeline;
  const view = shown(chosen, end, following);
  const { from, to } = view;
  const frame = { view, width };
  const close = useCloseWaves(id, view, waves);
  const hovered = hover?.at ?? null;

  useEffect(() => onThemeChange(() => setThemed((count) => count + 1)), []);
  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(320, Math.round(entry?.contentRect.width ?? 800))));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    element.width = width * devicePixelRatio;
    element.height = HEIGHT * devicePixelRatio;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    const font = getComputedStyle(element).fontFamily;
    draw(context, { timeline, gaps, waves, close, view: { from, to }, playhead, hover: hovered, selected, width, font }, colours(element));
    // A whole view is a new object on every render; its two numbers are what counts.
  }, [timeline, gaps, waves, close, from, to, playhead, hovered, selected, width, themed]);

  useZooming(canvas, width, end, setChosen);

  const move = (at: number, index?: number): void => {
    const time = Math.max(0, Math.min(end, at));
    if (chosen !== null) setChosen(reveal(view, time, end));
    onMove(time, index);
  };
  const step = (by: number): void => {
    const index = Math.max(0, Math.min(events.length - 1, selected + by));
    move(timeline.times[index] ?? 0, index);
  };
  const onKey = (event: KeyboardEvent): void => {
    const span = to - from;
    const reach = span * (event.shiftKey ? 0.1 : 0.01);
    const actions: Record<string, () => void> = {
      ArrowLeft: () => move(playhead - reach),
      ArrowRight: () => move(playhead + reach),
      "[": () => step(-1),
      "]": () => step(1),
      "+": () => setChosen(zoom(view, 0.5, playhead, end)),
      "=": () => setChosen(zoom(view, 0.5, playhead, end)),
      "-": () => setChosen(zoom(view, 2, playhead, end)),
      "0": () => setChosen(null),
      PageUp: () => setChosen(pan(view, -span * 0.8, end)),
      PageDown: () => setChosen(pan(view, span * 0.8, end)),
      Home: () => move(0),
      End: () => move(end),
    };
    const action = actions[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
  const onPointer = (event: PointerEvent): void => {
    const bounds = event.currentTarget.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const hit = hitAt(x, event.clientY - bounds.top, timeline, gaps, frame);
    const pressed = event.type === "pointerdown";
    if (pressed) event.currentTarget.setPointerCapture(event.pointerId);
    if (event.buttons === 1 && event.isPrimary) {
      if (pressed && hit.gap !== undefined) onGap(hit.gap);
      if (pressed && hit.mark !== undefined) move(hit.mark.at, hit.mark.index);
      else move(timeOf(x, frame));
    }
    setHover(x < GUTTER ? null : { x, at: Math.max(0, Math.min(end, timeOf(x, frame))), hit });
  };
  const at = lastBefore(timeline.times, playhead);
  return (
    <div className="timeline">
      <div className="timeline-tools" role="group" aria-label="Zoom">
        <button type="button" className="button" onClick={() => setChosen(zoom(view, 0.5, playhead, end))} aria-label="Zoom in">+</button>
        <button type="button" className="button" onClick={() => setChosen(zoom(view, 2, playhead, end))} aria-label="Zoom out">−</button>
        <button type="button" className="button" onClick={() => setChosen(null)}>Fit</button>
      </div>
      <div
        className="timeline-canvas"
        role="slider"
        tabIndex={0}
        aria-label="Time in the session"
        aria-valuemin={0}
        aria-valuemax={Math.round(end)}
        aria-valuenow={Math.round(playhead)}
        aria-valuetext={`${duration(playhead)}${at < 0 ? "" : `, ${events[at]?.type ?? ""}`}`}
        onKeyDown={onKey}
      >
        <canvas ref={canvas} onPointerDown={onPointer} onPointerMove={onPointer} onPointerLeave={() => setHover(null)} />
        {hover !== null && (
          <div className="tip" style={hover.x < width / 2 ? { insetInlineStart: hover.x } : { insetInlineEnd: width - hover.x + 16 }}>
            {pointed(hover.hit, events).map((line, i) => (i === 0 ? <b key={i}>{line}</b> : <span key={i}>{line}</span>))}
            <span>{duration(hover.at)}</span>
          </div>
        )}
        {playhead >= from && playhead <= to && <span className="playhead-time" style={{ insetInlineStart: Math.max(GUTTER, Math.min(xOf(playhead, frame), width - 24)) }}>{duration(playhead)}</span>}
      </div>
    </div>
  );
}

/** Where a stretch was chosen and the session is live, that stretch moves on with it. */
function shown(chosen: View | null, end: number, following: boolean): View {
  if (chosen === null) return { from: 0, to: end };
  const span = Math.min(end, chosen.to - chosen.from);
  return following ? { from: end - span, to: end } : chosen;
}

function pointed({ mark, span, gap }: Hit, events: readonly LogEvent[]): string[] {
  if (mark !== undefined) return [events[mark.index]?.type ?? ""];
  if (gap !== undefined) return [gap.title, gap.to > gap.from ? duration(gap.to - gap.from) : "why? click"];
  if (span === undefined) return [];
  const note = span.note === undefined ? [] : [span.note];
  return [span.label === "" ? "Speech" : span.label, ...(span.kind === "stage" ? note : [duration(span.to - span.from), ...note])];
}
