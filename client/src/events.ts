/** Typed listeners, for the events of an agent and for its levels. Owns who listens; a listener that throws stops nobody else. */

export type Unsubscribe = () => void;

export class Emitter<Events> {
  readonly #listeners = new Map<keyof Events, Set<(event: never) => void>>();

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): Unsubscribe {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])] as ((event: Events[Name]) => void)[]) {
      try {
        listener(event);
      } catch (cause) {
        reportError(cause);
      }
    }
  }
}
