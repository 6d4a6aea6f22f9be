/** The timeline as a slider over time: canvas for the eyes, a value in words for a screen reader. */
import { type KeyboardEvent, type PointerEvent, type ReactElement, useEffect, useLayoutEffect, useRef, useState } from "react";
import { colours, onThemeChange } from "../theme";
import { duration } from "../words";
import type { LogEvent } from "./api";
import { lastBefore, type Timeline, type View } from "./layout";
import { draw, HEIGHT, markAt, type Scene, timeOf, xOf } from "./timeline-drawing";
import { pan, reveal, zoom } from "./timeline-keys";

interface TimelineProps {
  events: readonly LogEvent[];
  timeline: Timeline;
  playhead: number;
  selected: number;
  /** Move to a time, or to an event. */
  onMove: (at: number, selected?: number) => void;
}

export function TimelineView({ events, timeline, playhead, selected, onMove }: TimelineProps): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(800);
  const [chosen, setChosen] = useState<View | null>(null);
  const [hover, setHover] = useState<{ x: number; index: number } | null>(null);
  const [themed, setThemed] = useState(0);
  const { end } = timeline;
  const whole: View = { from: 0, to: end };
  const view = chosen ?? whole;
  const { from, to } = view;
  const scene: Omit<Scene, "font"> = { timeline, view, playhead, selected, width };

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
    draw(context, { timeline, view: { from, to }, playhead, selected, width, font: getComputedStyle(element).fontFamily }, colours(element));
    // A whole view is a new object on every render; its two numbers are what counts.
  }, [timeline, from, to, playhead, selected, width, themed]);

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    // React's own wheel listener is passive and could not keep the page from scrolling.
    const onWheel = (event: WheelEvent): void => {
      const zooming = event.ctrlKey || event.metaKey;
      if (!zooming && Math.abs(event.deltaX) <= Math.abs(event.deltaY) && !event.shiftKey) return;
      event.preventDefault();
      setChosen((before) => {
        const from = before ?? { from: 0, to: end };
        if (zooming) return zoom(from, Math.exp(event.deltaY / 300), timeOf(event.offsetX, { view: from, width }), end);
        return pan(from, ((event.deltaX || event.deltaY) / width) * (from.to - from.from), end);
      });
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [end, width]);

  const move = (at: number, index?: number): void => {
    const time = Math.max(0, Math.min(end, at));
    if (chosen !== null) setChosen(reveal(chosen, time, end));
    onMove(time, index);
  };
  const step = (by: number): void => {
    const index = Math.max(0, Math.min(events.length - 1, selected + by));
    move(timeline.times[index] ?? 0, index);
  };
  const onKey = (event: KeyboardEvent): void => {
    const reach = (view.to - view.from) * (event.shiftKey ? 0.1 : 0.01);
    const actions: Record<string, () => void> = {
      ArrowLeft: () => move(playhead - reach),
      ArrowRight: () => move(playhead + reach),
      "[": () => step(-1),
      "]": () => step(1),
      "+": () => setChosen(zoom(view, 0.5, playhead, end)),
      "=": () => setChosen(zoom(view, 0.5, playhead, end)),
      "-": () => setChosen(zoom(view, 2, playhead, end)),
      "0": () => setChosen(null),
      Home: () => move(0),
      End: () => move(end),
    };
    const action = actions[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
  const place = (event: PointerEvent): { x: number; y: number } => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const onPointer = (event: PointerEvent): void => {
    const { x, y } = place(event);
    const index = markAt(x, y, { ...scene, font: "" });
    if (event.type === "pointerdown") event.currentTarget.setPointerCapture(event.pointerId);
    if (event.buttons === 1) {
      if (index >= 0 && event.type === "pointerdown") move(timeline.times[index] ?? 0, index);
      else move(timeOf(x, scene));
    }
    setHover(index < 0 ? null : { x, index });
  };
  const at = lastBefore(timeline.times, playhead);
  const hovered = hover === null ? undefined : events[hover.index];
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
        {hovered !== undefined && hover !== null && (
          <div className="tip" style={{ insetInlineStart: Math.min(hover.x, width - 190) }}>
            <b>{hovered.type}</b>
            <span>{duration(timeline.times[hover.index] ?? 0)}</span>
          </div>
        )}
        {hovered === undefined && <span className="playhead-time" style={{ insetInlineStart: Math.max(76, Math.min(xOf(playhead, scene), width - 24)) }}>{duration(playhead)}</span>}
      </div>
    </div>
  );
}
