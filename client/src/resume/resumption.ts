/**
 * How a call outlives its sockets: the ticket to it, what was seen of it, and when the next socket is tried.
 * Owns the facts taken and the count of tries. Does not own the socket or the snapshot: the agent does. A crash here leaves the
 * session waiting, and a reload of the page goes on with it.
 */
import { type Interruption, interrupted, STABLE_MS, WINDOW_MS } from "./backoff";
import { Facts } from "./facts";
import * as news from "./news";
import type { ClientMessage, ServerMessage } from "../socket/protocol";
import type { Snapshot } from "../state";
import type { Platform } from "../platform";
import { type ResumeTicket, ResumeTicketStore } from "./resume-ticket";

type Resumed = Extract<ServerMessage, { type: "resumed" }>;

const OFFLINE = "This device is offline.";

export class Resumption {
  facts = new Facts();
  ticket: ResumeTicket | null = null;
  windowMs = WINDOW_MS;
  /** Facts up to this position are told again, and are not news. */
  #replayTo = 0;
  /** When the session last answered, and how many tries that took. */
  #attachedAt = 0;
  #attempts = 0;
  #reloaded = false;
  #offline = false;
  readonly #box: ResumeTicketStore;

  constructor(private readonly platform: Platform, name?: string) {
    this.#box = new ResumeTicketStore(platform.store, name);
  }

  /** Another call begins, or this one is over: nothing of it can be taken up any more. */
  reset(): void {
    this.drop();
    this.facts = new Facts();
    this.#replayTo = this.#attachedAt = this.#attempts = 0;
    this.#reloaded = this.#offline = false;
  }

  drop(): void {
    this.ticket = null;
    this.#box.clear();
  }

  /** Keep the ticket, for this page and for the next one in this tab. */
  keep(ticket: ResumeTicket): void {
    this.ticket = ticket;
    this.#box.keep(ticket);
  }

  /** What a next page must know has changed. */
  amend(change: Partial<ResumeTicket>): void {
    if (this.ticket !== null) this.keep({ ...this.ticket, ...change });
  }

  /** Keep it for this page only: a reload does not take the call from the window that has it. */
  yield(): void {
    this.#box.clear();
  }

  /** The page is being left. */
  leave(): void {
    if (this.ticket !== null) this.#box.leave(this.ticket, this.platform.date());
  }

  /** The call that the page before this one left in this tab. */
  find(): ResumeTicket | null {
    const ticket = this.#box.find(this.platform.reloaded(), this.platform.date(), this.windowMs);
    if (ticket !== null) {
      this.reset();
      this.ticket = ticket;
      this.#reloaded = true;
    }
    return ticket;
  }

  /** The ticket to a conversation that was held over HTTP, named as its last answer told it; null for what is no such name. */
  given(conversation: string, url: string): ResumeTicket | null {
    const [, sessionId, token] = /^([0-9a-f]{32})\.([\w-]+)\.\d+$/.exec(conversation) ?? [];
    if (sessionId === undefined || token === undefined) return null;
    this.reset();
    this.keep({ url, sessionId, token, mode: "local", microphone: "off", pushToTalk: false });
    this.#reloaded = true;
    return this.ticket;
  }

  hello({ sessionId, token }: ResumeTicket): ClientMessage {
    return { type: "resume", sessionId, resumeToken: token, last_seq: this.facts.last };
  }

  /** A call that is joined without a socket having been lost. */
  joining(reason: string): Interruption {
    const now = this.platform.now();
    return { reason, attempt: 1, since: now, nextTryAt: null, until: now + this.windowMs };
  }

  /** What is done about a socket that was lost, or not to be had; null when it is too late. */
  after(before: Interruption | null, reason: string, later: boolean): Interruption | null {
    const now = this.platform.now();
    if (before === null && now - this.#attachedAt >= STABLE_MS) this.#attempts = 0;
    const { windowMs } = this;
    return interrupted(before, { reason: this.#offline ? OFFLINE : reason, later, now, random: this.platform.random(), windowMs, attempts: this.#attempts });
  }

  /** The network went away. The reason, for an interruption that there is. */
  offline(): string {
    this.#offline = true;
    return OFFLINE;
  }

  /** The network is there. Whether a socket that seems open is not to be trusted: it is, where it never left this computer. */
  online(): boolean {
    const was = this.#offline;
    this.#offline = false;
    return was && this.ticket !== null && !/^wss?:\/\/(localhost|127\.[\d.]+|\[::1\])[:/]/.test(this.ticket.url);
  }

  /** The session answers on a socket. */
  attached(): void {
    this.#attachedAt = this.platform.now();
    if (this.ticket !== null) this.keep(this.ticket);
  }

  /** The session goes on: what to tell the person, and what the server got wrong. */
  returned({ recovered, to, from, snapshot }: Resumed, before: Snapshot): { sentence: string; fault: string | null } {
    const { last } = this.facts;
    const { interruption, microphone } = before;
    const fault = recovered && (from !== last || to < last) ? `resumed from ${from} to ${to}, not from ${last}` : null;
    this.#replayTo = to;
    if (!recovered) this.facts.jump(to);
    this.#attempts = interruption?.attempt ?? 0;
    this.attached();
    const gapMs = this.#attachedAt - (interruption?.since ?? this.#attachedAt);
    const sentence = news.returned({ gapMs, reloaded: this.#reloaded, recovered, truncated: snapshot?.truncated ?? false, speaking: microphone === "on" });
    this.#reloaded = false;
    return { sentence, fault };
  }

  /** Whether a message tells of what was before this socket. */
  isReplayed(message: ServerMessage): boolean {
    const { seq } = message as { seq?: number };
    return seq !== undefined && seq <= this.#replayTo;
  }
}
