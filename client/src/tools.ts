/**
 * The functions that the page answers itself, each call once.
 * Owns which calls wait. A call that is told in a replay is answered only when the replay is over and nothing else answered it.
 */
import type { ClientMessage, Json, ServerMessage } from "./protocol";

export type Tool = (args: Json) => Json | Promise<Json>;
type CallMessage = Extract<ServerMessage, { type: "function_call" }>;

/** A replay has no last message; when none came for so long, it is over. */
export const SETTLE_MS = 250;

const TOOL_FAILED = "The page's function failed";

export class PageTools {
  #waiting: CallMessage[] = [];
  #settling: (() => void) | null = null;

  constructor(
    private readonly find: (name: string) => Tool | undefined,
    private readonly send: (message: ClientMessage) => void,
    private readonly later: (ms: number, work: () => void) => () => void,
  ) {}

  /** Take a message of the call; `replayed` says that it is older than this connection. */
  take(message: ServerMessage, replayed: boolean): void {
    if (message.type === "function_call" && !message.server_handled) {
      if (replayed) this.#waiting.push(message);
      else void this.#answer(message);
    } else if (message.type === "function_result" || message.type === "function_cancelled") {
      const { name, fn_call_id: id } = message;
      const index = this.#waiting.findIndex((call) => (id === undefined ? call.name === name : call.fn_call_id === id));
      if (index >= 0) this.#waiting.splice(index, 1);
    }
    if (this.#waiting.length > 0 && (replayed || this.#settling === null)) this.#settle();
  }

  /** The session is gone: nothing is answered any more. */
  clear(): void {
    this.#settling?.();
    this.#settling = null;
    this.#waiting = [];
  }

  #settle(): void {
    this.#settling?.();
    this.#settling = this.later(SETTLE_MS, () => {
      this.#settling = null;
      for (const call of this.#waiting.splice(0)) void this.#answer(call);
    });
  }

  async #answer(call: CallMessage): Promise<void> {
    const tool = this.find(call.name);
    let result: Json;
    try {
      result = tool === undefined ? { success: false, error: `This page has no function ${call.name}.` } : await tool(call.args);
    } catch (cause) {
      result = { success: false, error: `${TOOL_FAILED}: ${cause instanceof Error ? cause.message : String(cause)}` };
    }
    this.send({ type: "browser_function_result", name: call.name, result, ...(call.fn_call_id === undefined ? {} : { fn_call_id: call.fn_call_id }) });
  }
}
