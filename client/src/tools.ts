/**
 * The functions that the page answers itself, each call once.
 * Owns which calls wait. A call that is told in a replay is answered only when the replay is over and nothing else answered it.
 */
import type { ClientMessage, DeclaredTool, Json, ServerMessage } from "./socket/protocol";

/** Answers a call. What is not an object becomes `{ result }`; what is thrown, or a promise that is refused, the model is told as a failure. */
export type Run = (args: Json) => unknown;
/** What a handler has beside its arguments: secrets as stand-ins, and requests that the server makes. */
export interface HandlerContext {
  secrets: Record<string, string>;
  /** As in a browser, but without streams, `signal`, `Request`, `Blob` and `FormData`; `timeout` is in ms, 10,000 unless it says otherwise and 29,000 at most. */
  fetch: (url: string | URL | Request, options?: RequestInit & { timeout?: number }) => Promise<Response>;
  /** Sign with a secret whose rule says so: `algorithm` is SHA-256 unless it is SHA-1, SHA-384 or SHA-512; `encoding` hex, or base64. */
  hmac: (secret: string, data: string | Uint8Array, options?: { algorithm?: string; encoding?: "hex" | "base64" }) => Promise<string>;
}
/** A tool of a page with a key. Its handler is sent as text and runs on the server: it uses its arguments and `ctx`, and nothing around it. */
export interface HandlerTool {
  description?: string;
  /** `{city: "string"}`, `{city: {type: "string", description: "…"}}`, or a JSON Schema of an object; `?` ends a type that may be left out. */
  parameters?: Json;
  // Each handler has arguments of its own; what they are is in `parameters`.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  handler: (args: any, ctx: HandlerContext) => unknown;
}
/** A function of the page: alone, or with what the model is told of it. */
export type PageTool = Run | (Omit<DeclaredTool, "name"> & { run: Run });
export type Tool = PageTool | HandlerTool;
export type Tools = Record<string, Tool>;
/** What the page answered; the gateway does not tell it back. */
type ResultMessage = Extract<ClientMessage, { type: "browser_function_result" }>;
type CallMessage = Extract<ServerMessage, { type: "function_call" }>;

/** A replay has no last message; when none came for so long, it is over. */
export const SETTLE_MS = 250;

const TOOL_FAILED = "The page's function failed";

/** What `start` says of the page's functions; JSON leaves out what is not said. */
export function declared(tools: Tools): DeclaredTool[] {
  return Object.entries(tools).map(([name, tool]) => Object.assign({}, tool, { name, run: undefined }));
}

export class PageTools {
  #waiting: CallMessage[] = [];
  #settling: (() => void) | null = null;

  constructor(
    private readonly tools: () => Tools | undefined,
    private readonly send: (message: ResultMessage) => void,
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
    const { name, args, fn_call_id } = call;
    const tool = this.tools()?.[name];
    let result: unknown;
    try {
      if (tool === undefined) throw new Error(`it has no ${name}`);
      if (typeof tool === "object" && !("run" in tool)) throw new Error(`${name} runs on the server`);
      result = await (typeof tool === "function" ? tool : tool.run)(args);
      if (typeof result !== "object" || result === null || Array.isArray(result)) result = { result };
    } catch (cause) {
      result = { success: false, error: `${TOOL_FAILED}: ${cause instanceof Error ? cause.message : String(cause)}` };
    }
    this.send({ type: "browser_function_result", name, result: result as Json, fn_call_id });
  }
}
