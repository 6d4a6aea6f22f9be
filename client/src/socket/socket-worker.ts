/** The page's end of the socket's worker. Owns the worker, for as long as the call; the WebSockets are the worker's. */
import socketSource from "inline:./worker.ts";
import type { FromWorker, ToWorker } from "../audio/messages";
import { WORKER_FAILED } from "../errors";
import { scriptUrl, type ScriptUrl } from "../script-url";
import { type ClientMessage, SUBPROTOCOL } from "./protocol";

export class SocketWorker {
  readonly #worker: Worker;
  readonly #url: ScriptUrl;

  constructor(
    private readonly url: string,
    onMessage: (message: FromWorker) => void,
  ) {
    this.#url = scriptUrl(socketSource);
    this.#worker = new Worker(this.#url.href, { name: "voxbridge-socket" });
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => onMessage(data);
    this.#worker.onerror = () => onMessage({ type: "close", code: WORKER_FAILED, reason: "" });
  }

  #tell(message: ToWorker, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  /** Open a socket after `afterMs`, and say `hello` first; instead of one that was open or due. */
  open(hello: ClientMessage, afterMs = 0): void {
    this.#tell({ type: "open", url: this.url, protocol: SUBPROTOCOL, hello: JSON.stringify(hello), afterMs });
  }

  /** The session has answered: everything may go out. */
  attach(): void {
    this.#tell({ type: "attach" });
  }

  /** Say it now, or as soon as the session has answered. */
  send(message: ClientMessage): void {
    this.#tell({ type: "send", text: JSON.stringify(message), id: (message as { id?: string }).id });
  }

  /** The log has the text of this name: it is not sent again. */
  taken(id: string): void {
    this.#tell({ type: "taken", id });
  }

  /** Connect a worklet with the worker; return the end of the port for the worklet. */
  port(of: "capture" | "playback"): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#tell({ type: of, port: port2 }, [port2]);
    return port1;
  }

  /** Whether microphone frames go out; without a socket, the last 5 s of them are kept. */
  microphone(on: boolean): void {
    this.#tell({ type: "microphone", on });
  }

  close(): void {
    this.#tell({ type: "close" });
  }

  dispose(): void {
    this.#worker.terminate();
    this.#url.revoke();
  }
}

/** The socket's address on the gateway that `base` names, or on the page's own. */
export function socketUrl(base: string | undefined, page: string): string {
  const url = new URL(base ?? "/ws/vox", page);
  url.protocol = url.protocol.replace("http", "ws");
  if (url.pathname === "/") url.pathname = "/ws/vox";
  return url.href;
}
