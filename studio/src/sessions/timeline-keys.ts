/** The keyboard on a timeline, and what it does to the view. Pure. */
import type { View } from "./layout";

export const TIMELINE_KEYS: [key: string, meaning: string][] = [
  ["← →", "Move through time; with Shift in larger steps"],
  ["[ ]", "Event before, event after"],
  ["+ −", "Zoom in, zoom out"],
  ["0", "Show the whole session"],
  ["Page ↑ ↓", "Move the stretch that is shown"],
  ["Home End", "First event, last event"],
];

const MIN_SPAN_MS = 20;

/** The view `factor` times as wide, with `at` ms staying where it is on the screen. */
export function zoom(view: View, factor: number, at: number, end: number): View {
  const span = Math.max(MIN_SPAN_MS, Math.min(end, (view.to - view.from) * factor));
  const share = (at - view.from) / (view.to - view.from);
  return clamp({ from: at - share * span, to: at + (1 - share) * span }, end);
}

/** The view moved by `ms`, within the session. */
export function pan(view: View, ms: number, end: number): View {
  return clamp({ from: view.from + ms, to: view.to + ms }, end);
}

/** The view moved as far as needed for `at` to be in it. */
export function reveal(view: View, at: number, end: number): View {
  const margin = (view.to - view.from) * 0.08;
  if (at < view.from) return pan(view, at - view.from - margin, end);
  if (at > view.to) return pan(view, at - view.to + margin, end);
  return view;
}

function clamp({ from, to }: View, end: number): View {
  const span = Math.min(to - from, end);
  const start = Math.max(0, Math.min(from, end - span));
  return { from: start, to: start + span };
}
