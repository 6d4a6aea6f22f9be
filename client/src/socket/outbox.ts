/**
 * What the person says while nobody listens: microphone frames and messages in the order they were made, for the next socket.
 * Owns the bounds. Speech older than 5 s is dropped, oldest first: what was said last runs on into what is being said.
 */
import { INPUT_FRAME_BYTES } from "./frames";

/** ms of speech, in frames of 20 ms. */
export const HELD_MS = 5_000;
export const HELD_FRAMES = HELD_MS / 20;
export const HELD_MESSAGES = 64;

export class Outbox {
  readonly #items: (string | ArrayBuffer)[] = [];
  #frames = 0;

  get length(): number {
    return this.#items.length;
  }

  /** Keep a frame; the buffer is the caller's again. */
  frame(frame: ArrayBuffer): void {
    if (frame.byteLength > INPUT_FRAME_BYTES) return;
    if (this.#frames === HELD_FRAMES) {
      this.#items.splice(this.#items.findIndex((item) => typeof item !== "string"), 1);
      this.#frames -= 1;
    }
    this.#items.push(frame.slice(0));
    this.#frames += 1;
  }

  /** Keep a message; when there are too many, the newest is the one that is not kept. */
  message(text: string): void {
    if (this.#items.length - this.#frames < HELD_MESSAGES) this.#items.push(text);
  }

  /** Put messages ahead of what waits, but for those that wait already. */
  again(texts: readonly string[]): void {
    this.#items.unshift(...texts.filter((text) => !this.#items.includes(text)));
  }

  /** The oldest, taken out. */
  shift(): string | ArrayBuffer | undefined {
    const item = this.#items.shift();
    if (item !== undefined && typeof item !== "string") this.#frames -= 1;
    return item;
  }

  clear(): void {
    this.#items.length = 0;
    this.#frames = 0;
  }
}
