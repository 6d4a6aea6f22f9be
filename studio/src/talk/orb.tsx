/** The canvas that shows the orb. Owns the animation; the levels come past React, 20 times a second. */
import { type ReactElement, useEffect, useRef } from "react";
import type { AgentState, VoiceAgent } from "voxbridge/react";
import { colours, onThemeChange } from "../theme";
import { Orb } from "./orb-drawing";

/** About 30 pictures a second: the eye asks for no more of a slow shape, and without a graphics card each one costs. */
const FRAME_MS = 30;

export function OrbView({ agent, state }: { agent: VoiceAgent; state: AgentState }): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = useRef(state);
  useEffect(() => {
    shown.current = state;
  }, [state]);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const orb = new Orb();
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    let palette = colours(element);
    let levels = { input: 0, output: 0 };
    let frame = 0;
    let painted = Number.NEGATIVE_INFINITY;
    const paint = (now: number): void => {
      frame = requestAnimationFrame(paint);
      if (now - painted < FRAME_MS) return;
      painted = now;
      const size = Math.round(element.clientWidth * devicePixelRatio);
      if (element.width !== size) element.width = element.height = size;
      const time = still.matches ? 0 : now / 1000;
      orb.draw(context, size, shown.current, { time, ...levels }, palette, still.matches ? 1 : 0.26);
    };
    frame = requestAnimationFrame(paint);
    const stopLevels = agent.levels.subscribe((next) => (levels = next));
    const stopTheme = onThemeChange(() => (palette = colours(element)));
    return () => {
      cancelAnimationFrame(frame);
      stopLevels();
      stopTheme();
    };
  }, [agent]);

  return <canvas ref={canvas} className="orb" aria-hidden="true" />;
}
