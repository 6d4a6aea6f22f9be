/** Wheel and fingers on the timeline: what they do to the view. Owns the listeners that React cannot set. */
import { type Dispatch, type RefObject, type SetStateAction, useEffect } from "react";
import { type Frame, timeOf } from "./geometry";
import type { View } from "./layout";
import { pan, zoom } from "./timeline-keys";

/** A wheel zooms with Ctrl, as a pinch on a touchpad does, and pans sideways or with Shift; two fingers do both. */
export function useZooming(canvas: RefObject<HTMLCanvasElement | null>, width: number, end: number, setChosen: Dispatch<SetStateAction<View | null>>): void {
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const change = (to: (view: View) => View): void => setChosen((before) => to(before ?? { from: 0, to: end }));
    // React's own wheel listener is passive and could not keep the page from scrolling.
    const onWheel = (event: WheelEvent): void => {
      const zooming = event.ctrlKey || event.metaKey;
      if (!zooming && Math.abs(event.deltaX) <= Math.abs(event.deltaY) && !event.shiftKey) return;
      event.preventDefault();
      change((view) => {
        const frame: Frame = { view, width };
        if (zooming) return zoom(view, Math.exp(event.deltaY / 300), timeOf(event.offsetX, frame), end);
        return pan(view, ((event.deltaX || event.deltaY) / width) * (view.to - view.from), end);
      });
    };
    const fingers = new Map<number, number>();
    const onDown = (event: PointerEvent): void => {
      if (event.pointerType === "touch") fingers.set(event.pointerId, event.offsetX);
    };
    const onMove = (event: PointerEvent): void => {
      if (!fingers.has(event.pointerId)) return;
      const before = [...fingers.values()];
      fingers.set(event.pointerId, event.offsetX);
      if (fingers.size !== 2) return;
      event.stopPropagation();
      change((view) => pinched(view, before as [number, number], [...fingers.values()] as [number, number], width, end));
    };
    const onUp = (event: PointerEvent): void => void fingers.delete(event.pointerId);
    element.addEventListener("wheel", onWheel, { passive: false });
    element.addEventListener("pointerdown", onDown);
    element.addEventListener("pointermove", onMove);
    element.addEventListener("pointerup", onUp);
    element.addEventListener("pointercancel", onUp);
    return () => {
      element.removeEventListener("wheel", onWheel);
      element.removeEventListener("pointerdown", onDown);
      element.removeEventListener("pointermove", onMove);
      element.removeEventListener("pointerup", onUp);
      element.removeEventListener("pointercancel", onUp);
    };
  }, [canvas, end, width, setChosen]);
}

/** The view after two fingers moved: what was under them still is. */
export function pinched(view: View, before: [number, number], after: [number, number], width: number, end: number): View {
  const frame: Frame = { view, width };
  const distance = (fingers: [number, number]): number => Math.max(20, Math.abs(fingers[1] - fingers[0]));
  const middle = (fingers: [number, number]): number => (fingers[0] + fingers[1]) / 2;
  const zoomed = zoom(view, distance(before) / distance(after), timeOf(middle(before), frame), end);
  const moved = timeOf(middle(before), { view: zoomed, width }) - timeOf(middle(after), { view: zoomed, width });
  return pan(zoomed, moved, end);
}
