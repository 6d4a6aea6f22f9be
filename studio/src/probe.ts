/** `window.__voxbridge`, only with `?probe=1`: what a browser test reads and measures (docs/studio.md). */
import type { Marks, Recording, Snapshot, VoiceAgent } from "voxbridge/react";

export interface StudioProbe {
  snapshot: () => Snapshot;
  /** Hz and seconds of the sound device, or null outside a call. */
  clock: () => { rate: number; time: number } | null;
  /** What was played and recorded since the call began, as mono samples at the device's rate. */
  played: () => Recording;
  recorded: () => Recording;
  marks: () => Marks;
}

declare global {
  interface Window {
    __voxbridge?: StudioProbe;
  }
}

export function isProbing(): boolean {
  return new URLSearchParams(location.search).get("probe") === "1";
}

export function expose(agent: VoiceAgent): (() => void) | undefined {
  const { probe } = agent;
  if (probe === null) return undefined;
  let rate = 0;
  const clock = (): { rate: number; time: number } | null => {
    const now = agent.audioClock;
    if (now !== null) rate = now.rate;
    return now;
  };
  const stop = agent.subscribe(clock);
  window.__voxbridge = {
    snapshot: agent.getSnapshot,
    clock,
    played: () => probe.played(rate),
    recorded: () => probe.recorded(rate),
    marks: () => structuredClone(probe.marks),
  };
  return () => {
    stop();
    delete window.__voxbridge;
  };
}
