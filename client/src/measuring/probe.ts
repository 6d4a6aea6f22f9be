/**
 * A measuring device for tests: what was played and recorded, sample by sample, on one clock.
 * Owns copies of samples and marks while it is on, at most `MAX_SAMPLES` of each. Off, it costs nothing.
 */
import type { FromCapture, FromPlayback } from "../audio/messages";
import type { PlaybackReport } from "../audio/playback-queue";
import { Onset } from "./onset";

/** Five minutes at 48 kHz. */
export const MAX_SAMPLES = 48_000 * 300;
const MAX_FACTS = 10_000;

export interface Recording {
  /** Hz. */
  rate: number;
  /** Seconds on the context's clock of the first sample. */
  start: number;
  samples: Float32Array;
}

export interface Marks {
  /** When the microphone went from quiet to loud; seconds on the context's clock, as all times here. */
  onsets: number[];
  flushes: { time: number; generation: number; cut: boolean }[];
  reports: (PlaybackReport & { time: number })[];
  /** Facts of the log as they were taken: position and message type. */
  facts: { seq: number; type: string }[];
}

class Tape {
  start = 0;
  #count = 0;
  #blocks: Float32Array[] = [];

  add(time: number, samples: Float32Array): void {
    if (this.#count === 0) this.start = time;
    if (this.#count + samples.length > MAX_SAMPLES) return;
    this.#blocks.push(samples);
    this.#count += samples.length;
  }

  take(rate: number): Recording {
    const samples = new Float32Array(this.#count);
    let at = 0;
    for (const block of this.#blocks) {
      samples.set(block, at);
      at += block.length;
    }
    return { rate, start: this.start, samples };
  }
}

export class Probe {
  #played = new Tape();
  #recorded = new Tape();
  #onset = new Onset();
  readonly marks: Marks = { onsets: [], flushes: [], reports: [], facts: [] };

  capture(message: FromCapture): void {
    if (message.type !== "tap") return;
    if (this.#onset.take(message.samples, message.time)) this.marks.onsets.push(message.time);
    this.#recorded.add(message.time, message.samples);
  }

  playback(message: FromPlayback): void {
    if (message.type === "tap") this.#played.add(message.time, message.samples);
    else if (message.type === "flush") this.marks.flushes.push({ time: message.time, generation: message.generation, cut: message.cut });
    else if (message.type === "playback") this.marks.reports.push({ ...message.report, time: message.time });
  }

  fact({ type, seq }: { type: string; seq?: number }): void {
    if (seq !== undefined && this.marks.facts.length < MAX_FACTS) this.marks.facts.push({ seq, type });
  }

  played(rate: number): Recording {
    return this.#played.take(rate);
  }

  recorded(rate: number): Recording {
    return this.#recorded.take(rate);
  }

  clear(): void {
    this.#played = new Tape();
    this.#recorded = new Tape();
    this.#onset = new Onset();
    this.marks.onsets.length = 0;
    this.marks.flushes.length = 0;
    this.marks.reports.length = 0;
    this.marks.facts.length = 0;
  }
}
