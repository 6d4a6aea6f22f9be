/**
 * What becomes of a call whose socket closed, whose network changed, or that its page ends: another try, another window, or its end.
 * Owns what the gateway said before a close, and who waits for the set-up. Does not own the ticket to the call: `Resumption` does.
 */
import { afterClose, AgentError, type Closed, describeClose, OVER, TAKEN_OVER } from "../errors";
import * as news from "../resume/news";
import type { Resumption } from "../resume/resumption";
import type { ClientMessage } from "../socket/protocol";
import { disconnected, reconnecting } from "../state";
import { type CallCore, fields } from "./core";

/** How long an end waits for the server's answer. */
const END_MS = 2_000;

export class CallEnds {
  /** What the gateway said before it closed the socket. */
  refusal = "";
  #ending = false;
  #settle: { resolve: () => void; reject: (error: AgentError) => void } | null = null;

  constructor(
    private readonly core: CallCore,
    private readonly resumption: Resumption,
    private readonly hello: () => ClientMessage,
    /** Give up socket and sound. */
    private readonly release: () => void,
  ) {}

  /** A call is begun, or joined. */
  begin(): void {
    this.#ending = false;
    this.refusal = "";
  }

  /** Settled by `started`, or by the end of the call. */
  settled(): Promise<void> {
    return new Promise<void>((resolve, reject) => (this.#settle = { resolve, reject }));
  }

  get starting(): boolean {
    return this.#settle !== null;
  }

  started(): void {
    this.#settle?.resolve();
    this.#settle = null;
  }

  closed(code: number, reason: string): void {
    const { core, resumption } = this;
    const ended = this.#ending || core.snapshot.state === "ended" || code === 1000;
    const { next, reason: meaning } = afterClose(code);
    if (ended || resumption.ticket === null) {
      this.#finish(code, reason, ended);
    } else if (next === "taken") {
      resumption.yield();
      this.release();
      core.become(disconnected(core.snapshot, describeClose(TAKEN_OVER, "", false), null, "elsewhere"));
    } else if (next === "over") {
      this.#close(describeClose(OVER, "", false), null);
    } else if (next === "stop") {
      this.giveUp(describeClose(code, reason, false), meaning);
    } else {
      const said = next === "later" ? this.refusal || core.snapshot.error?.message : this.refusal;
      this.#retry(code, said || meaning, next === "later");
    }
  }

  giveUp(closed: Closed, detail?: string): void {
    this.#close(closed, AgentError.of("CONNECTION_LOST", detail));
  }

  /** The call did not come about: `error` says why. */
  abandon(error: AgentError): void {
    this.#close({ code: 0, reason: error.message, retryable: error.retryable, ended: false }, error);
  }

  offline(): void {
    const { core, resumption } = this;
    const reason = resumption.offline();
    const { interruption } = core.snapshot;
    if (interruption !== null) core.set({ interruption: { ...interruption, reason }, reason });
  }

  /** Try now what waits to be tried; and where the network changed, what may only seem to be there. */
  back(network: boolean): void {
    const { core, resumption } = this;
    const { interruption, connection } = core.snapshot;
    const doubtful = network && resumption.online();
    if (interruption !== null && interruption.nextTryAt !== null) core.connection?.open(this.hello());
    else if (doubtful && connection === "connected") this.#retry(1006, "The network changed.", false);
  }

  /** End the call, by the server where it can be asked. */
  end(hush: () => void): void {
    const { core, resumption } = this;
    if (!core.inCall || this.#ending) return;
    this.#ending = true;
    resumption.drop();
    if (core.snapshot.connection !== "connected") {
      this.closed(1000, "");
      return;
    }
    hush();
    core.send({ type: "end" });
    const { connection } = core;
    core.platform.later(END_MS, () => {
      if (connection !== null && core.connection === connection) this.closed(1000, "");
    });
  }

  /** Wait for the next try, or give up where there is none. */
  #retry(code: number, reason: string, later: boolean): void {
    const { core, resumption } = this;
    const interruption = resumption.after(core.snapshot.interruption, reason, later);
    this.refusal = "";
    if (interruption === null) {
      this.giveUp({ code, reason: `The call could not be taken up again within ${news.span(resumption.windowMs)}.`, retryable: true, ended: false });
    } else {
      core.become(reconnecting(core.snapshot, interruption));
      core.connection?.open(this.hello(), Math.max(1, (interruption.nextTryAt ?? 0) - core.platform.now()));
    }
  }

  /** Over, with the call ended or cut off. */
  #finish(code: number, reason: string, ended: boolean): void {
    const { starting } = this;
    const closed = starting && !ended
      ? { code, reason: "The gateway could not be reached.", retryable: true, ended: false }
      : describeClose(code, reason, ended);
    const cause = this.core.snapshot.error !== null && !ended;
    this.#close(closed, ended || cause ? null : AgentError.of(starting ? "CONNECTION_FAILED" : "CONNECTION_LOST"));
  }

  #close(closed: Closed, error: AgentError | null): void {
    const { core } = this;
    this.resumption.drop();
    this.release();
    core.become(disconnected(core.snapshot, closed, error === null ? null : fields(error)));
    if (error !== null) core.emitter.emit("failure", error);
    this.#settle?.reject(error ?? AgentError.of("CANCELLED"));
    this.#settle = null;
  }
}
