/**
 * The page's end of the socket's worker. Owns the worker, for as long as the call; the WebSockets are the worker's.
 * Where a page's content security policy allows no worker of ours, the same code runs in the page.
 */
import socketSource from "inline:./worker.ts";
import type { FromWorker, Ready, ToWorker } from "../audio/messages";
import { WORKER_FAILED } from "../errors";
import { scriptUrl } from "../script-url";
import { type ClientMessage, SUBPROTOCOL } from "./protocol";
import type { serve } from "./serve";

type Tell = (message: ToWorker, transfer: Transferable[]) => void;

export class SocketWorker {
  readonly #script = scriptUrl(socketSource);
  #worker: Worker | null = null;
  /** Null until the other side runs: a port that is handed to a worker that never does would be lost. */
  #other: Tell | null = null;
  #waiting: Parameters<Tell>[] = [];

  constructor(
    private readonly url: string,
    private readonly onMessage: (message: FromWorker) => void,
  ) {
    try {
      const worker = new Worker(this.#script.href, { name: "voxbridge-socket" });
      worker.onmessage = ({ data }: MessageEvent<FromWorker | Ready>) => this.#take(data, (message, transfer) => worker.postMessage(message, transfer));
      worker.onerror = () => (this.#other === null ? this.#inPage() : this.#failed());
      this.#worker = worker;
    } catch {
      this.#inPage();
    }
  }

  #inPage(): void {
    this.#worker = null;
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }: MessageEvent<FromWorker | Ready>) => this.#take(data, (message, transfer) => port1.postMessage(message, transfer));
    const loaded = import(new URL("./socket.js", import.meta.url).href) as Promise<{ serve: typeof serve }>;
    loaded.then((script) => script.serve(port2)).catch(() => this.#failed());
  }

  #failed(): void {
    this.onMessage({ type: "close", code: WORKER_FAILED, reason: "" });
  }

  #take(message: FromWorker | Ready, tell: Tell): void {
    if (message.type !== "ready") {
      this.onMessage(message);
      return;
    }
    this.#other = tell;
    for (const one of this.#waiting.splice(0)) tell(...one);
  }

  #tell(message: ToWorker, transfer: Transferable[] = []): void {
    if (this.#other === null) this.#waiting.push([message, transfer]);
    else this.#other(message, transfer);
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
    this.#worker?.terminate();
    this.#script.revoke();
  }
}

/** The socket's address on the gateway that `base` names, or on the page's own. */
export function socketUrl(base: string | undefined, page: string): string {
  const url = new URL(base ?? "/ws/vox", page);
  url.protocol = url.protocol.replace("http", "ws");
  if (url.pathname === "/") url.pathname = "/ws/vox";
  return url.href;
}
