/** What the page, the two worklets and the socket's worker tell each other. Audio itself only goes between worklet and worker. */
import type { PlaybackReport } from "./playback-queue";

/** Page to worklet. `socket` hands over the port to the worker; `tap` copies samples to the page, for measurements only. */
export type ToWorklet = { type: "socket"; port: MessagePort } | { type: "tap"; on: boolean } | { type: "hush" };

/** Samples as they left or entered the device, at its rate; `time` is the context's clock at the first one, in seconds. */
export interface Tap {
  type: "tap";
  time: number;
  samples: Float32Array;
}

export interface CaptureStatus {
  type: "level";
  level: number;
  dropped: number;
}

export type FromCapture = CaptureStatus | Tap;

export type FromPlayback =
  | { type: "level"; level: number; queuedMs: number; underruns: number; dropped: number; bufferMs: number }
  | { type: "playback"; report: PlaybackReport; time: number }
  | { type: "flush"; generation: number; time: number; /** The server did not ask for it: the socket was lost. */ cut: boolean }
  | Tap;

/** Page to worker. `hello` is the first message of the socket; `attach` says that it was answered with a session. */
export type ToWorker =
  | { type: "open"; url: string; protocol: string; hello: string; afterMs: number }
  | { type: "attach" }
  | { type: "send"; text: string; /** Send it again on the next socket until it is `taken`. */ id?: string | undefined }
  | { type: "taken"; id: string }
  | { type: "capture"; port: MessagePort }
  | { type: "playback"; port: MessagePort }
  | { type: "microphone"; on: boolean }
  | { type: "close" };

/** The first thing that a worker says: it runs. */
export interface Ready {
  type: "ready";
}

/** Worker to page, from then on. */
export type FromWorker =
  | { type: "trying" }
  | { type: "open"; protocol: string }
  | { type: "message"; text: string }
  | { type: "close"; code: number; reason: string };
