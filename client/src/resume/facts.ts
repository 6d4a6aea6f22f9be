/**
 * What this page has seen of the log: each fact is taken once, in order, whichever gateway tells it.
 * Owns the last position. Messages without one are about the moment and always pass.
 */

export class Facts {
  /** The newest position seen: what `resume` names. */
  last = 0;
  /** One fact may be told in two messages, such as an error and the end that it caused. */
  readonly #told = new Set<string>();

  /** Whether the message is to be taken. */
  take({ type, seq }: { type: string; seq?: number }): boolean {
    if (seq === undefined) return true;
    if (seq < this.last || (seq === this.last && this.#told.has(type))) return false;
    if (seq > this.last) this.#told.clear();
    this.#told.add(type);
    this.last = seq;
    return true;
  }

  /** Everything up to `position` is known: it came as a whole. */
  jump(position: number): void {
    this.last = position;
    this.#told.clear();
  }
}
