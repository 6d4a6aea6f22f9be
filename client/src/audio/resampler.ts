/**
 * A streaming polyphase resampler: windowed-sinc low-pass (Kaiser), any rate to any rate.
 * Owns its history; allocates nothing after construction, so it may run in an AudioWorklet.
 * Delay: `ZERO_CROSSINGS` periods of the lower rate, that is 1 ms at 16 kHz.
 */

const ZERO_CROSSINGS = 16;
/** Kaiser window for about 80 dB in the stop band. */
const KAISER_BETA = 8;
/** The -6 dB point as a share of the lower Nyquist frequency; the transition band ends just above Nyquist. */
const CUTOFF = 0.9;
/** Exact for the rates of real devices; a stranger rate takes the nearest of this many phases. */
const MAX_PHASES = 512;

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** Modified Bessel function of the first kind, order 0. */
function bessel0(x: number): number {
  let sum = 1;
  let term = 1;
  for (let k = 1; k < 32; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

export class Resampler {
  readonly up: number;
  readonly down: number;
  readonly #phases: number;
  readonly #taps: number;
  readonly #table: Float32Array;
  /** The last `taps` inputs, written twice, so that a window of them is always contiguous. */
  readonly #history: Float32Array;
  #at = 0;
  #position: number;

  /** Rates in Hz, whole numbers. Throws `RangeError` outside 8,000 to 384,000. */
  constructor(
    readonly from: number,
    readonly to: number,
  ) {
    for (const rate of [from, to]) {
      if (!Number.isInteger(rate) || rate < 8_000 || rate > 384_000) {
        throw new RangeError(`A sample rate is a whole number from 8,000 to 384,000 Hz, not ${rate}.`);
      }
    }
    const divisor = gcd(from, to);
    this.up = to / divisor;
    this.down = from / divisor;
    this.#phases = Math.min(this.up, MAX_PHASES);
    // Both lengths are in input samples: the kernel is that much longer when the rate goes down.
    const cutoff = (CUTOFF * Math.min(from, to)) / from;
    const half = Math.ceil((ZERO_CROSSINGS * from) / Math.min(from, to));
    this.#taps = 2 * half;
    this.#history = new Float32Array(2 * this.#taps);
    this.#table = new Float32Array((this.#phases + 1) * this.#taps);
    for (let phase = 0; phase <= this.#phases; phase++) this.#fill(phase, half, cutoff);
    this.#position = 0;
  }

  #fill(phase: number, half: number, cutoff: number): void {
    const row = phase * this.#taps;
    const fraction = phase / this.#phases;
    let sum = 0;
    for (let tap = 0; tap < this.#taps; tap++) {
      const x = tap - half + 1 - fraction;
      const edge = 1 - (x / half) ** 2;
      const window = edge <= 0 ? 0 : bessel0(KAISER_BETA * Math.sqrt(edge)) / bessel0(KAISER_BETA);
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * cutoff * x) / (Math.PI * cutoff * x);
      this.#table[row + tap] = sinc * window;
      sum += sinc * window;
    }
    for (let tap = 0; tap < this.#taps; tap++) this.#table[row + tap] = (this.#table[row + tap] as number) / sum;
  }

  /** Input samples after which the last one has fully passed: what to add as silence at an end. */
  get delay(): number {
    return this.#taps / 2;
  }

  /** The most samples that `inputs` samples can give. */
  outputsFor(inputs: number): number {
    return Math.ceil((inputs * this.up) / this.down) + 1;
  }

  /** Resample `count` samples of `input` from `start` into `output` at `offset`; answers how many were written. */
  process(input: Float32Array, start: number, count: number, output: Float32Array, offset: number): number {
    const taps = this.#taps;
    const history = this.#history;
    const table = this.#table;
    let written = 0;
    for (let i = 0; i < count; i++) {
      const sample = input[start + i] as number;
      history[this.#at] = sample;
      history[this.#at + taps] = sample;
      this.#at = (this.#at + 1) % taps;
      // `position` counts in 1/up input samples from the newest input; outputs lie between it and the next one.
      while (this.#position < this.up) {
        const row = Math.round((this.#position / this.up) * this.#phases) * taps;
        let sum = 0;
        for (let tap = 0; tap < taps; tap++) {
          sum += (history[this.#at + tap] as number) * (table[row + tap] as number);
        }
        output[offset + written] = sum;
        written += 1;
        this.#position += this.down;
      }
      this.#position -= this.up;
    }
    return written;
  }

  /** Forget everything: the next sample is the first of another signal. */
  reset(): void {
    this.#history.fill(0);
    this.#at = 0;
    this.#position = 0;
  }
}
