/**
 * What is heard, and when: reply frames in, samples at the device's rate out.
 * Owns the jitter buffer, the order of generations, flushes, fades and the account of what was played.
 * Does not own the clock: it counts the samples that the device took. A crash here loses the sound, not the call.
 */
import { FLUSH, INPUT_RATE, OUTPUT_RATE, readPrefix, samplesOf } from "../socket/frames";
import { Resampler } from "./resampler";

export type PlaybackState = "playing" | "finished" | "flushed";
/** What a client tells the server about its loudspeaker (docs/protocol.md, `playback`). */
export interface PlaybackReport {
  generation: number;
  played_ms: number;
  state: PlaybackState;
}

export const FADE_MS = 5;
export const START_BUFFER_MS = 60;
export const MIN_BUFFER_MS = 40;
export const MAX_BUFFER_MS = 200;
/** A reply that was sent faster than it is played waits for at most five minutes. What comes on top is dropped. */
export const MAX_QUEUED_SECONDS = 300;
/** A short wait is worth a full buffer; a longer one is worth speaking. */
const MAX_WAIT_MS = 200;
const BLOCK = 480;

interface Segment {
  generation: number;
  /** Hz of its chunks. */
  rate: number;
  chunks: Int16Array[];
  /** Samples not yet handed to the resampler. */
  queued: number;
  offset: number;
  last: boolean;
  drained: boolean;
  rendered: number;
}

export class PlaybackQueue {
  underruns = 0;
  dropped = 0;
  bufferMs = START_BUFFER_MS;
  readonly #segments: Segment[] = [];
  readonly #resamplers: Readonly<Record<number, Resampler>>;
  readonly #input = new Float32Array(BLOCK);
  readonly #staging: Float32Array;
  readonly #fade: number;
  readonly #tail: Float32Array;
  #tailAt = 0;
  #tailEnd = 0;
  #stagingAt = 0;
  #stagingEnd = 0;
  #playing = false;
  #waited = 0;
  #gain = 0;
  #smooth = true;
  /** Seconds in all segments that were not yet handed to a resampler. */
  #seconds = 0;
  /** Generations up to this one are never played again; -1 before the first flush. */
  #flushedThrough = -1;
  #squares = 0;
  #counted = 0;
  /** Generations that the server may still flush, with what was heard of them. */
  readonly #open = new Map<number, number>();

  constructor(
    private readonly rate: number,
    private readonly report: (report: PlaybackReport) => void,
  ) {
    const resamplers = [OUTPUT_RATE, INPUT_RATE].map((from) => new Resampler(from, rate));
    this.#resamplers = Object.fromEntries(resamplers.map((resampler) => [resampler.from, resampler]));
    this.#fade = Math.round((FADE_MS / 1000) * rate);
    this.#tail = new Float32Array(this.#fade);
    this.#staging = new Float32Array(4096 + this.#fade + Math.max(...resamplers.map((resampler) => resampler.outputsFor(2 * BLOCK))));
  }

  /** Milliseconds waiting to be played. */
  get queuedMs(): number {
    return (this.#seconds + (this.#stagingEnd - this.#stagingAt) / this.rate) * 1000;
  }

  /** The generation at the loudspeaker, or null. */
  get generation(): number | null {
    return this.#playing ? (this.#segments[0]?.generation ?? null) : null;
  }

  /** Take a frame from the socket. Answers the generation that was flushed, if it was a flush. */
  push(frame: ArrayBuffer): number | null {
    const prefix = readPrefix(frame);
    if (prefix === null) {
      this.dropped += 1;
      return null;
    }
    if (prefix.kind === FLUSH) {
      this.flush(prefix.generation);
      return prefix.generation;
    }
    const samples = samplesOf(frame);
    const newest = this.#segments.at(-1);
    const seconds = samples.length / prefix.rate;
    const stale = prefix.generation <= this.#flushedThrough || (newest !== undefined && prefix.generation < newest.generation);
    if (stale || this.#seconds + seconds > MAX_QUEUED_SECONDS || (newest?.generation === prefix.generation && newest.rate !== prefix.rate)) {
      this.dropped += 1;
      return null;
    }
    let segment = newest;
    if (segment?.generation !== prefix.generation) {
      if (segment !== undefined) segment.last = true;
      segment = { generation: prefix.generation, rate: prefix.rate, chunks: [], queued: 0, offset: 0, last: false, drained: false, rendered: 0 };
      this.#segments.push(segment);
      this.#open.set(prefix.generation, this.#open.get(prefix.generation) ?? 0);
    }
    if (samples.length > 0) segment.chunks.push(samples);
    segment.queued += samples.length;
    segment.last = prefix.last;
    this.#seconds += seconds;
    return null;
  }

  /** Drop every generation up to and including `generation`, now and later, and tell the server what was heard. */
  flush(generation: number): void {
    this.#drop(generation);
    if (generation >= this.#flushedThrough) this.#flushedThrough = generation;
    if (!this.#open.has(generation)) this.#open.set(generation, 0);
    for (const [open, played] of [...this.#open].sort((a, b) => a[0] - b[0])) {
      if (open > generation) continue;
      this.#open.delete(open);
      this.report({ generation: open, played_ms: played, state: "flushed" });
    }
  }

  /** Silence what is queued now, ahead of the server's flush, which follows and is the one that is answered. */
  hush(): void {
    const newest = this.#segments.at(-1);
    if (newest === undefined) return;
    this.#drop(newest.generation);
    this.#flushedThrough = Math.max(this.#flushedThrough, newest.generation);
  }

  /**
   * The socket is gone: drop what it brought and tell what was heard of it. Answers the newest generation that was dropped.
   * What follows from another socket is played, except for more of a reply, which the server begins anew under another number;
   * an echo goes on under its own.
   */
  cut(): number | null {
    const newest = Math.max(-1, ...this.#open.keys());
    if (newest < 0) return null;
    const before = this.#flushedThrough;
    const echo = this.#segments.at(-1)?.rate === INPUT_RATE;
    this.flush(newest);
    if (echo) this.#flushedThrough = before;
    return newest;
  }

  #drop(generation: number): void {
    let head = this.#segments[0];
    if (head !== undefined && head.generation <= generation && this.#playing) {
      this.#fadeOut(head);
      this.#playing = false;
    }
    while (head !== undefined && head.generation <= generation) {
      this.#seconds -= head.queued / head.rate;
      this.#segments.shift();
      head = this.#segments[0];
    }
    if (!this.#playing) this.#restart();
  }

  #fadeOut(head: Segment): void {
    this.#refill(head, this.#fade);
    const count = Math.min(this.#fade, this.#stagingEnd - this.#stagingAt);
    for (let i = 0; i < count; i++) {
      this.#tail[i] = (this.#staging[this.#stagingAt + i] as number) * this.#gain * (1 - (i + 1) / count);
    }
    this.#tailAt = 0;
    this.#tailEnd = count;
    this.#account(head, count);
  }

  #restart(): void {
    if (this.#segments.length === 0) this.#seconds = 0;
    this.#stagingAt = 0;
    this.#stagingEnd = 0;
    this.#waited = 0;
    this.#gain = 0;
    for (const resampler of Object.values(this.#resamplers)) resampler.reset();
  }

  #account(segment: Segment, samples: number): void {
    const before = segment.rendered;
    segment.rendered += samples;
    const played = Math.round((segment.rendered / this.rate) * 1000);
    this.#open.set(segment.generation, played);
    if (before === 0 || Math.floor(before / this.rate) !== Math.floor(segment.rendered / this.rate)) {
      this.report({ generation: segment.generation, played_ms: played, state: "playing" });
    }
  }

  /** Fill `out` with what is to be heard next: speech, a fade, or silence. */
  read(out: Float32Array): void {
    let at = 0;
    while (at < out.length && this.#tailAt < this.#tailEnd) {
      out[at] = this.#tail[this.#tailAt] as number;
      at += 1;
      this.#tailAt += 1;
    }
    while (at < out.length) {
      const head = this.#segments[0];
      if (head === undefined || !this.#ready(head, out.length - at)) break;
      this.#refill(head, out.length - at + this.#fade);
      const count = Math.min(this.#stagingEnd - this.#stagingAt, out.length - at);
      if (count === 0) {
        this.#playing = false;
        if (head.last) this.#finish(head);
        else this.#starve();
        continue;
      }
      this.#render(head, out, at, count);
      at += count;
    }
    out.fill(0, at);
    for (const sample of out) this.#squares += sample * sample;
    this.#counted += out.length;
  }

  #ready(head: Segment, wanted: number): boolean {
    if (this.#playing) return true;
    const queued = (head.queued / head.rate) * 1000;
    const waited = (this.#waited / this.rate) * 1000;
    if (head.queued > 0 || head.last) {
      if (head.last || queued >= this.bufferMs || waited >= MAX_WAIT_MS) {
        this.#playing = true;
        this.#smooth = true;
        return true;
      }
      this.#waited += wanted;
    }
    return false;
  }

  #finish(head: Segment): void {
    this.#segments.shift();
    this.#open.delete(head.generation);
    this.report({ generation: head.generation, played_ms: Math.round((head.rendered / this.rate) * 1000), state: "finished" });
    if (this.#smooth) this.bufferMs = Math.max(MIN_BUFFER_MS, this.bufferMs - 10);
    this.#restart();
  }

  #starve(): void {
    this.underruns += 1;
    this.#smooth = false;
    this.bufferMs = Math.min(MAX_BUFFER_MS, this.bufferMs + 20);
    this.#waited = 0;
    this.#gain = 0;
  }

  /** Ramps down over the last samples there are, so that neither an underrun nor an end is a click, and up again after. */
  #render(head: Segment, out: Float32Array, at: number, count: number): void {
    const step = 1 / this.#fade;
    for (let i = 0; i < count; i++) {
      const remaining = this.#stagingEnd - this.#stagingAt - i;
      this.#gain = Math.min(this.#gain + step, 1, remaining / this.#fade);
      out[at + i] = (this.#staging[this.#stagingAt + i] as number) * this.#gain;
    }
    this.#stagingAt += count;
    this.#account(head, count);
  }

  #refill(head: Segment, wanted: number): void {
    if (this.#stagingEnd - this.#stagingAt >= wanted) return;
    this.#staging.copyWithin(0, this.#stagingAt, this.#stagingEnd);
    this.#stagingEnd -= this.#stagingAt;
    this.#stagingAt = 0;
    while (this.#stagingEnd < wanted) {
      const count = this.#take(head);
      if (count === 0) return;
      this.#stagingEnd += this.#resampler(head).process(this.#input, 0, count, this.#staging, this.#stagingEnd);
    }
  }

  #resampler({ rate }: Segment): Resampler {
    return this.#resamplers[rate] as Resampler;
  }

  #take(head: Segment): number {
    const chunk = head.chunks[0];
    if (chunk === undefined) {
      if (!head.last || head.drained) return 0;
      head.drained = true;
      const count = Math.min(this.#resampler(head).delay, BLOCK);
      this.#input.fill(0, 0, count);
      return count;
    }
    const count = Math.min(BLOCK, chunk.length - head.offset);
    for (let i = 0; i < count; i++) this.#input[i] = (chunk[head.offset + i] as number) / 32_768;
    head.offset += count;
    if (head.offset === chunk.length) {
      head.chunks.shift();
      head.offset = 0;
    }
    head.queued -= count;
    this.#seconds -= count / head.rate;
    return count;
  }

  /** Root mean square of what was played since the last call, 0 to 1. */
  takeLevel(): number {
    const level = this.#counted === 0 ? 0 : Math.sqrt(this.#squares / this.#counted);
    this.#squares = 0;
    this.#counted = 0;
    return level;
  }
}
