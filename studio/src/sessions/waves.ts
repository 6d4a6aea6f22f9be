/** Both voices' waveforms: the whole session, and the stretch in view once it is looked at closely. Owns the polling of what is still read. */
import { useEffect, useState } from "react";
import { type Channel, fetchWaveform, isRefused, ReadError, type Waveform, willPass } from "./api";
import type { View } from "./layout";

const BINS = 2000;
const READING_MS = 120;
const LIVE_MS = 1000;
const SETTLE_MS = 150;
/** Below so many ms a bin of the whole is as fine as a pixel of the view. */
const CLOSE = 0.5;

export interface Waves {
  in: Waveform | null;
  out: Waveform | null;
}

const NONE: Waves = { in: null, out: null };

/** The waveforms of a session; `why` says why there are none. */
export function useWaves(id: string, live: boolean, ready: boolean): { waves: Waves; why: string } {
  const [waves, setWaves] = useState<Waves>(NONE);
  const [problem, setProblem] = useState<ReadError | null>(null);
  useEffect(() => {
    if (!ready) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    const timers = new Map<Channel, ReturnType<typeof setTimeout>>();
    const round = async (channel: Channel): Promise<void> => {
      let again: number | null = live ? LIVE_MS : null;
      try {
        const found = await fetchWaveform(id, channel, BINS, null, signal);
        if (signal.aborted) return;
        setWaves((before) => ({ ...before, [channel]: found }));
        setProblem(null);
        if (!found.complete) again = READING_MS;
      } catch (cause) {
        if (!(cause instanceof ReadError)) return;
        setProblem(cause);
        again = willPass(cause) ? LIVE_MS * 3 : null;
      }
      if (again !== null && !signal.aborted) timers.set(channel, setTimeout(() => void round(channel), again));
    };
    void round("in");
    void round("out");
    return () => {
      leaving.abort();
      for (const timer of timers.values()) clearTimeout(timer);
    };
  }, [id, live, ready]);
  return { waves, why: reason(waves, live, problem) };
}

/** The waveforms of the view, finer than those of the whole; nothing while that is fine enough. */
export function useCloseWaves(id: string, { from, to }: View, whole: Waves): Waves {
  const [close, setClose] = useState<Waves>(NONE);
  const longest = Math.max(whole.in?.to_ms ?? 0, whole.out?.to_ms ?? 0);
  const needed = longest > 0 && to - from < longest * CLOSE;
  useEffect(() => {
    if (!needed) return;
    const leaving = new AbortController();
    const timer = setTimeout(() => {
      for (const channel of ["in", "out"] as const) {
        fetchWaveform(id, channel, BINS, { from, to }, leaving.signal)
          .then((found) => setClose((before) => ({ ...before, [channel]: found })))
          .catch(() => undefined);
      }
    }, SETTLE_MS);
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [id, from, to, needed, longest]);
  return needed ? close : NONE;
}

function reason(waves: Waves, live: boolean, problem: ReadError | null): string {
  const known = [waves.in, waves.out].filter((wave) => wave !== null);
  if (known.some(({ source }) => source === "record")) return known.every(({ complete }) => complete) ? "" : "The recording is being read.";
  if (known.some(({ source }) => source === "live")) return "Not recorded: the waveform shows what was said since you opened this page.";
  if (isRefused(problem)) return "This token can't read the waveforms; the bars show when somebody spoke.";
  if (problem !== null) return "The waveforms cannot be read now; the bars show when somebody spoke.";
  if (known.length < 2) return "";
  return live ? "No audio yet; the bars show when somebody spoke." : "Not recorded, so there are no waveforms: the bars show when somebody spoke. VOXBRIDGE_RECORDING=on records.";
}

/** The least and the greatest sample between two times, of 127; null where there was none. */
export function peak({ from_ms, to_ms, low, high }: Waveform, from: number, to: number): [low: number, high: number] | null {
  const width = (to_ms - from_ms) / Math.max(1, low.length);
  const first = Math.max(0, Math.floor((from - from_ms) / width));
  const last = Math.min(low.length - 1, Math.max(first, Math.ceil((to - from_ms) / width) - 1));
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let i = first; i <= last; i++) {
    least = Math.min(least, low[i] ?? Number.POSITIVE_INFINITY);
    most = Math.max(most, high[i] ?? Number.NEGATIVE_INFINITY);
  }
  return least <= most ? [least, most] : null;
}
