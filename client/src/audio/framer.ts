/**
 * Microphone blocks at the device's rate in, 20 ms frames of 16 kHz PCM16 with their prefix out.
 * Owns the resampler, a pool of frame buffers and the input level. Allocates nothing while the pool holds.
 * A crash here loses at most 20 ms of speech.
 */
import { INPUT_FRAME_BYTES, INPUT_RATE, INPUT_SAMPLES, PREFIX_BYTES, writePrefix } from "../socket/frames";
import { Resampler } from "./resampler";

/** 640 ms of frames may be on their way to the socket; more means nobody takes them. */
export const POOL = 32;
const MAX_BLOCK = 2048;

export class Framer {
  /** Frames that were dropped because no buffer had come back. */
  dropped = 0;
  readonly #resampler: Resampler;
  readonly #resampled: Float32Array;
  readonly #pending = new Float32Array(INPUT_SAMPLES);
  readonly #pool: ArrayBuffer[] = [];
  #filled = 0;
  #sequence = 0;
  #squares = 0;
  #counted = 0;

  /** `emit` gets whole frames and may keep or transfer the buffer; `recycle` gives one back. */
  constructor(
    rate: number,
    private readonly emit: (frame: ArrayBuffer) => void,
    private readonly now: () => number,
  ) {
    this.#resampler = new Resampler(rate, INPUT_RATE);
    this.#resampled = new Float32Array(this.#resampler.outputsFor(MAX_BLOCK));
    for (let i = 0; i < POOL; i++) this.#pool.push(new ArrayBuffer(INPUT_FRAME_BYTES));
  }

  /** Take one block, of at most 2,048 samples. */
  push(block: Float32Array): void {
    for (const sample of block) this.#squares += sample * sample;
    this.#counted += block.length;
    const count = this.#resampler.process(block, 0, block.length, this.#resampled, 0);
    for (let i = 0; i < count; i++) {
      this.#pending[this.#filled] = this.#resampled[i] as number;
      this.#filled += 1;
      if (this.#filled === INPUT_SAMPLES) this.#complete();
    }
  }

  #complete(): void {
    this.#filled = 0;
    const sequence = this.#sequence;
    this.#sequence = (sequence + 1) >>> 0;
    const frame = this.#pool.pop();
    if (frame === undefined) {
      this.dropped += 1;
      return;
    }
    writePrefix(frame, sequence, this.now());
    const pcm = new Int16Array(frame, PREFIX_BYTES);
    for (let i = 0; i < INPUT_SAMPLES; i++) {
      const sample = Math.max(-1, Math.min(1, this.#pending[i] as number));
      pcm[i] = Math.round(sample < 0 ? sample * 32_768 : sample * 32_767);
    }
    this.emit(frame);
  }

  /** A buffer that `emit` handed out is free again. */
  recycle(frame: ArrayBuffer): void {
    if (frame.byteLength === INPUT_FRAME_BYTES && this.#pool.length < POOL) this.#pool.push(frame);
  }

  /** Root mean square of what came in since the last call, 0 to 1. */
  takeLevel(): number {
    const level = this.#counted === 0 ? 0 : Math.sqrt(this.#squares / this.#counted);
    this.#squares = 0;
    this.#counted = 0;
    return level;
  }
}
