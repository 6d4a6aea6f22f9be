/**
 * A guided tour, step by step: which one is shown, and what is said with it. Owns no element: `Scene` shows a step and waits for its target.
 * A target that does not come in time is passed over, and said to be missing.
 */
import type { Json } from "voxbridge/react";

export interface Step {
  title: string;
  text: string;
  target: string;
  spoken: string;
  more: string;
}

export interface Tour {
  page: string;
  name: string;
  description: string;
  path: string;
  steps: readonly Step[];
}

export const ACTIONS = ["next", "back", "skip", "stop", "explain"] as const;
export type Action = (typeof ACTIONS)[number];

/** What is shown beside an element. */
export interface Card {
  title: string;
  text: string;
  /** Number of the step, from 1; 0 before the first one. */
  number: number;
  count: number;
  explains: boolean;
}

/** The page on which a tour is shown. */
export interface Scene {
  /** The element of a selector, once it is there; null after so many ms. */
  find: (target: string, withinMs: number) => Promise<Element | null>;
  show: (element: Element | null, card: Card) => void;
  close: () => void;
}

/** How long the targets of one order are waited for in all. A page answers a function within 5 s. */
export const PATIENCE_MS = 3_000;

export class Guide {
  #number = 0;
  #open = true;
  /** Orders one after the other: a click and a voice may come at the same time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    readonly tour: Tour,
    private readonly scene: Scene,
  ) {
    scene.show(null, { title: tour.name, text: tour.description, number: 0, count: tour.steps.length, explains: false });
  }

  get open(): boolean {
    return this.#open;
  }

  /** Do as the user says; the words that go with it are in the answer. */
  steer(action: Action): Promise<Json> {
    const done = this.#turn.then(() => this.#steer(action));
    this.#turn = done.catch(() => undefined);
    return done;
  }

  /** End the tour, whatever is under way. */
  stop(): void {
    if (!this.#open) return;
    this.#open = false;
    this.scene.close();
  }

  async #steer(action: Action): Promise<Json> {
    if (!this.#open) return this.#told("The tour is over.");
    if (action === "stop") {
      this.stop();
      return this.#told("All right. The tour is over.");
    }
    if (action === "explain") return this.#explained();
    if (action === "back" && this.#number <= 1) return this.#told(this.#number === 0 ? "The tour has not begun. Say next." : "This is the first step.");
    return this.#go(action === "back" ? -1 : 1);
  }

  async #go(by: 1 | -1): Promise<Json> {
    const missing: string[] = [];
    const until = Date.now() + PATIENCE_MS;
    for (let number = this.#number + by; ; number += by) {
      const step = this.tour.steps[number - 1];
      if (step === undefined) return this.#ended(missing, by);
      const element = step.target === "" ? null : await this.scene.find(step.target, Math.max(until - Date.now(), 0));
      if (!this.#open) return this.#told("The tour is over.");
      if (element === null && step.target !== "") {
        missing.push(step.title);
        continue;
      }
      this.#number = number;
      this.#show(element, step, step.text);
      return this.#told([passed(missing), step.spoken || step.text].join(""), step);
    }
  }

  #ended(missing: string[], by: 1 | -1): Json {
    if (by === -1) return this.#told(`${passed(missing)}There is nothing before this.`);
    this.stop();
    return this.#told(`${passed(missing)}That was the tour of ${this.tour.name}.`);
  }

  async #explained(): Promise<Json> {
    const step = this.tour.steps[this.#number - 1];
    if (step === undefined) return this.#told(this.tour.description);
    const more = step.more || step.text;
    const element = step.target === "" ? null : await this.scene.find(step.target, PATIENCE_MS);
    if (!this.#open) return this.#told("The tour is over.");
    this.#show(element, step, more);
    return this.#told(step.more === "" ? `There is no more to it: ${step.text}` : more, step);
  }

  #show(element: Element | null, step: Step, text: string): void {
    this.scene.show(element, { title: step.title, text, number: this.#number, count: this.tour.steps.length, explains: step.more !== "" && text === step.text });
  }

  #told(spoken: string, step?: Step): Json {
    const at = step === undefined ? {} : { title: step.title };
    return { success: true, touring: this.#open, page: this.tour.page, step: this.#number, steps: this.tour.steps.length, ...at, spoken };
  }
}

function passed(missing: readonly string[]): string {
  return missing.map((title) => `“${title}” is not on this page now, so I pass over it. `).join("");
}

export function isAction(value: unknown): value is Action {
  return (ACTIONS as readonly unknown[]).includes(value);
}
