/** The page's end of the socket's worker. Owns the worker; the WebSocket itself is the worker's. */
import socketSource from "inline:./worklets/socket.ts";
import type { FromWorker, ToWorker } from "./audio/messages";
import { type ClientMessage, SUBPROTOCOL } from "./protocol";

export class Connection {
  readonly #worker: Worker;
  readonly #url: string;

  constructor(
    private readonly url: string,
    onMessage: (message: FromWorker) => void,
  ) {
    this.#url = URL.createObjectURL(new Blob([socketSource], { type: "text/javascript" }));
    this.#worker = new Worker(this.#url, { name: "voxbridge-socket" });
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => onMessage(data);
    this.#worker.onerror = () => onMessage({ type: "close", code: 1006, reason: "" });
  }

  #tell(message: ToWorker, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  open(): void {
    this.#tell({ type: "open", url: this.url, protocol: SUBPROTOCOL });
  }

  send(message: ClientMessage): void {
    this.#tell({ type: "send", text: JSON.stringify(message) });
  }

  /** A line between a worklet and the worker; answers the worklet's end. */
  line(of: "capture" | "playback"): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#tell({ type: of, port: port2 }, [port2]);
    return port1;
  }

  /** Whether microphone frames go out. */
  microphone(on: boolean): void {
    this.#tell({ type: "microphone", on });
  }

  close(): void {
    this.#tell({ type: "close" });
  }

  dispose(): void {
    this.#worker.terminate();
    URL.revokeObjectURL(this.#url);
  }
}

/** The socket's address on the gateway that `base` names, or on the page's own. */
export function socketUrl(base: string | undefined, page: string): string {
  const url = new URL(base ?? "/ws/vox", page);
  url.protocol = url.protocol.replace("http", "ws");
  if (url.pathname === "/") url.pathname = "/ws/vox";
  return url.href;
}
