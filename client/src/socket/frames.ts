/**
 * Audio frames: a 16-byte prefix and PCM16 (docs/protocol.md, section 4).
 * Owns the layout in the browser. Does not own what a frame means: the playback queue and the gateway decide that.
 */

export const VERSION = 1;
export const PCM16 = 1;
export const FLUSH = 2;
/** Flag: the last frame of its generation, possibly empty. */
export const LAST = 1;
/** Flag: the payload is at the microphone's rate, as in `echo` mode. */
export const RATE_16K = 2;
export const PREFIX_BYTES = 16;
export const MAX_FRAME_BYTES = 65_536;
export const INPUT_RATE = 16_000;
export const OUTPUT_RATE = 24_000;
/** Samples of one microphone frame: 20 ms. */
export const INPUT_SAMPLES = 320;
export const INPUT_FRAME_BYTES = PREFIX_BYTES + INPUT_SAMPLES * 2;

export interface Prefix {
  kind: number;
  last: boolean;
  /** Hz. */
  rate: number;
  generation: number;
  sequence: number;
  /** Milliseconds of the Unix clock, modulo 2^32. */
  timeMs: number;
}

/** Write a microphone prefix (generation 0) into the first 16 bytes of `frame`. */
export function writePrefix(frame: ArrayBuffer, sequence: number, timeMs: number): void {
  const view = new DataView(frame);
  view.setUint8(0, VERSION);
  view.setUint8(1, PCM16);
  view.setUint16(2, 0, true);
  view.setUint32(4, 0, true);
  view.setUint32(8, sequence >>> 0, true);
  view.setUint32(12, timeMs % 4_294_967_296, true);
}

/** The prefix of a frame from the server, or null where it is none this client can play. */
export function readPrefix(frame: ArrayBuffer): Prefix | null {
  if (frame.byteLength < PREFIX_BYTES || frame.byteLength > MAX_FRAME_BYTES) return null;
  const view = new DataView(frame);
  const kind = view.getUint8(1);
  if (view.getUint8(0) !== VERSION || (kind !== PCM16 && kind !== FLUSH)) return null;
  const payload = frame.byteLength - PREFIX_BYTES;
  const flags = view.getUint16(2, true);
  const last = (flags & LAST) !== 0;
  if (kind === PCM16 && ((payload === 0 && !last) || payload % 2 !== 0)) return null;
  return {
    kind,
    last,
    rate: (flags & RATE_16K) === 0 ? OUTPUT_RATE : INPUT_RATE,
    generation: view.getUint32(4, true),
    sequence: view.getUint32(8, true),
    timeMs: view.getUint32(12, true),
  };
}

/** The samples of a `pcm16` frame, without copying. Every browser's platform is little-endian, as the frame is. */
export function samplesOf(frame: ArrayBuffer): Int16Array {
  return new Int16Array(frame, PREFIX_BYTES);
}
