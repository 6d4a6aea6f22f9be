/**
 * What the agent is told of the page while a call is up: where the person is, errors that nobody caught, what the page states.
 * Nothing without the page's consent (`awareness`). Owns what is said and how often; the gateway takes secrets out once more.
 */
import type { Unsubscribe } from "../events";
import type { VoiceAgentOptions } from "../options";
import type { ClientMessage } from "../socket/protocol";
import type { CallCore } from "./core";

type Report = Extract<ClientMessage, { type: "awareness" }>;

/** The gateway's limit, less what the page states by itself. */
export const REPORTS_A_MINUTE = 50;
export const TEXT_LIMIT = 500;
const MINUTE_MS = 60_000;
const SECRET = /token|secret|passw|pwd|auth|key|code|sess|sid|sig|cred|jwt|otp|state|nonce|ticket/i;

export interface ScreenWatcher {
  /** The person is on another page. */
  visited: (href: string, title: string) => void;
  /** An error that nobody caught. */
  failed: (kind: string, message: string) => void;
}

/** Path and harmless parameters of an address. */
export function shown(href: string): string {
  const { pathname, searchParams, hash } = new URL(href);
  for (const name of [...searchParams.keys()]) if (SECRET.test(name)) searchParams.delete(name);
  const query = `${searchParams}`;
  return `${pathname}${query === "" ? "" : `?${query}`}${SECRET.test(hash) ? "" : hash}`.slice(0, TEXT_LIMIT);
}

export class CallScreen {
  #unwatch: Unsubscribe | null = null;
  #page = "";
  #times: number[] = [];

  constructor(readonly core: CallCore) {}

  /** Report from now on, beginning with the page that is open; a second time nothing changes. */
  begin(wanted: VoiceAgentOptions["awareness"]): void {
    const { pages = true, errors = true } = typeof wanted === "object" ? wanted : {};
    if (wanted === undefined || wanted === false || this.#unwatch !== null) return;
    const { platform } = this.core;
    this.#unwatch = platform.screen({
      visited: (href, title) => pages && this.#visit(href, title),
      failed: (kind, message) => errors && this.#send({ event_type: "error", error_type: kind, message, page: shown(platform.page()) }),
    });
  }

  /** State something about the person's work; an empty value takes it back. Nothing is said outside a call, or without consent. */
  state(key: string, value: string): void {
    if (this.#unwatch !== null && key !== "") this.#send({ event_type: "context", key, value });
  }

  end(): void {
    this.#unwatch?.();
    this.#unwatch = null;
    this.#page = "";
  }

  #visit(href: string, title: string): void {
    const page = shown(href);
    if (page === this.#page) return;
    this.#page = page;
    this.#send({ event_type: "page_visit", page, title });
  }

  #send(report: Omit<Report, "type">): void {
    const now = this.core.platform.now();
    this.#times = this.#times.filter((at) => at > now - MINUTE_MS);
    if (this.#times.length >= REPORTS_A_MINUTE) return;
    this.#times.push(now);
    const cut = Object.fromEntries(Object.entries(report).map(([field, text]) => [field, text.slice(0, TEXT_LIMIT)]));
    this.core.send({ ...report, ...cut, type: "awareness" });
  }
}
