/**
 * What an agent needs of the browser: clock, dice, socket, sound, storage, and news of the network and of the page's life.
 * Owns nothing; it is the one place where the agent touches `window`, and what tests put others in for.
 */
import { type DeviceEvents, type DeviceOptions, SoundDevice } from "./audio/device";
import type { FromWorker } from "./audio/messages";
import type { ScreenWatcher } from "./call/screen";
import { watchPage } from "./page-watch";
import { SocketWorker } from "./socket/socket-worker";
import type { Unsubscribe } from "./events";
import type { Store } from "./resume/resume-ticket";

export type Wire = Pick<SocketWorker, "open" | "attach" | "send" | "taken" | "port" | "microphone" | "close" | "dispose">;
export type Sound = Pick<
  SoundDevice,
  "openLoudspeaker" | "openMicrophone" | "closeMicrophone" | "setMuted" | "setVolume" | "setDevice" | "hush" | "tap" | "resume" | "close"
> & { readonly context: { readonly sampleRate: number; readonly currentTime: number } };

export interface Watcher {
  /** The network is back, or the page is looked at again: what waits to be tried may be tried now. */
  back: (network: boolean) => void;
  offline: () => void;
  /** The page is being left. */
  leaving: () => void;
}

export interface Platform {
  /** The page's address. */
  page: () => string;
  /** The person's time zone, by its IANA name. */
  timeZone: () => string;
  /** Whether this page is one that was there before, loaded again. */
  reloaded: () => boolean;
  /** ms of a clock that does not jump, and of the Unix clock. */
  now: () => number;
  date: () => number;
  random: () => number;
  later: (ms: number, work: () => void) => () => void;
  connect: (url: string, onMessage: (message: FromWorker) => void) => Wire;
  sound: (options: DeviceOptions, events: DeviceEvents) => Sound;
  store: () => Store | undefined;
  watch: (watcher: Watcher) => Unsubscribe;
  /** Where the person is, and what goes wrong there, until the answer is called. */
  screen: (watcher: ScreenWatcher) => Unsubscribe;
}

export const browser: Platform = {
  page: () => location.href,
  timeZone: () => Intl.DateTimeFormat().resolvedOptions().timeZone,
  reloaded: () => (performance.getEntriesByType("navigation")[0] as PerformanceNavigationTiming | undefined)?.type === "reload",
  now: () => performance.now(),
  date: () => Date.now(),
  random: () => Math.random(),
  later: (ms, work) => {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
  connect: (url, onMessage) => new SocketWorker(url, onMessage),
  sound: (options, events) => new SoundDevice(options, events),
  store: () => (typeof sessionStorage === "undefined" ? undefined : sessionStorage),
  watch: ({ back, offline, leaving }) => {
    const listening = new AbortController();
    const { signal } = listening;
    addEventListener("online", () => back(true), { signal });
    addEventListener("offline", offline, { signal });
    addEventListener("pagehide", leaving, { signal });
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && back(false), { signal });
    return () => listening.abort();
  },
  screen: watchPage,
};
