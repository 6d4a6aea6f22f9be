/** A clock that stands still until a test moves it, with timers that come due in order. */
export class Clock {
  now = 0;
  #timers: { at: number; work: () => void }[] = [];

  readonly later = (ms: number, work: () => void): (() => void) => {
    const timer = { at: this.now + ms, work };
    this.#timers.push(timer);
    return () => (this.#timers = this.#timers.filter((other) => other !== timer));
  };

  get pending(): number {
    return this.#timers.length;
  }

  pass(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.now = Math.max(this.now, due.at);
      due.work();
    }
    this.now = end;
  }
}
