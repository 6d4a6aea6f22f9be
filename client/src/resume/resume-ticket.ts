/**
 * What it takes to go on with a call: kept by the page, and in this tab's session storage, so that a reload goes on as well.
 * Owns the stored form. A tab that was duplicated has a copy; only a page that was left or reloaded counts as the call's own.
 */
import type { Mode } from "../socket/protocol";

const KEY = "voxbridge.call";

export interface ResumeTicket {
  url: string;
  sessionId: string;
  token: string;
  mode: Mode;
  /** Whether the call had a microphone, and whether it was open. */
  microphone: "off" | "on" | "muted";
  pushToTalk: boolean;
}

type Stored = ResumeTicket & { /** ms of the Unix clock at which the page was left. */ left?: number };

/** Web storage, or what stands for it; every access may throw where the browser forbids it. */
export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export class ResumeTicketStore {
  readonly #key: string;

  /** `name` tells the agents of a page apart. */
  constructor(private readonly store: () => Store | undefined, name = "") {
    this.#key = name === "" ? KEY : `${KEY}.${name}`;
  }

  keep(ticket: ResumeTicket): void {
    this.#write(ticket);
  }

  /** The page goes away; what is kept may be taken up by the next one in this tab. */
  leave(ticket: ResumeTicket, now: number): void {
    this.#write({ ...ticket, left: now });
  }

  clear(): void {
    this.#try((store) => store.removeItem(this.#key));
  }

  /** The ticket that a page before this one left within `windowMs`; `reloaded` says that this page is the same one again. */
  find(reloaded: boolean, now: number, windowMs: number): ResumeTicket | null {
    const text = this.#try((store) => store.getItem(this.#key));
    if (typeof text !== "string") return null;
    let found: Partial<Stored> | null;
    try {
      found = JSON.parse(text) as Partial<Stored> | null;
    } catch {
      found = null;
    }
    if (typeof found?.sessionId !== "string" || typeof found.token !== "string" || typeof found.url !== "string") {
      this.clear();
      return null;
    }
    const { left, ...ticket } = found as Stored;
    if (left === undefined) return reloaded ? ticket : null;
    if (now - left <= windowMs) return ticket;
    this.clear();
    return null;
  }

  #write(stored: Stored): void {
    this.#try((store) => store.setItem(this.#key, JSON.stringify(stored)));
  }

  #try<Result>(work: (store: Store) => Result): Result | undefined {
    try {
      const store = this.store();
      return store === undefined ? undefined : work(store);
    } catch {
      return undefined;
    }
  }
}
