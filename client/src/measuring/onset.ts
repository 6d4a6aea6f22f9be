/**
 * When the microphone goes from quiet to loud: the mark from which a barge-in is measured (docs/studio.md, probe).
 * Owns a threshold and a hold time; it is a measuring device, and decides nothing in a call.
 */

/** Root mean square, about -34 dB of full scale. */
export const ONSET_LEVEL = 0.02;
/** Seconds of quiet before the next onset counts. */
export const QUIET_SECONDS = 0.3;

export class Onset {
  #lastLoud = Number.NEGATIVE_INFINITY;

  /** True if this block, which starts at `time` seconds, is the first loud one after quiet. */
  take(block: Float32Array, time: number): boolean {
    let squares = 0;
    for (const sample of block) squares += sample * sample;
    if (Math.sqrt(squares / block.length) < ONSET_LEVEL) return false;
    const fresh = time - this.#lastLoud >= QUIET_SECONDS;
    this.#lastLoud = time;
    return fresh;
  }
}
