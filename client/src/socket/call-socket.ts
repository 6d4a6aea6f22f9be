/**
 * The socket's side of the worker: one WebSocket after the other for one call, and what waits while there is none.
 * Owns when a socket is opened, how long it may take to answer, and what goes out when. Does not own why one is opened: the
 * page does. A crash here ends the call for this page; the session waits for it.
 */
import type { FromWorker } from "../audio/messages";
import { HELD_MESSAGES, Outbox } from "./outbox";

/** Bytes the browser may hold unsent, about 4 s of speech; what is newer waits here. */
export const MAX_UNSENT = 131_072;
/** How long a socket may take to open, and its session to answer. */
export const OPEN_MS = 5_000;
export const ANSWER_MS = 15_000;
/** What waited goes out at ten times the pace of speech: the far end takes more at once only where it has nothing else to do. */
const AGAIN_MS = 20;
const AT_ONCE = 10;
const LOST = 1006;

export type Cancel = () => void;

export interface LineParts {
  connect: (url: string, protocol: string) => WebSocket;
  later: (ms: number, work: () => void) => Cancel;
  tell: (message: FromWorker) => void;
  /** Reply frames, and `cut`: the socket they came from is gone. */
  play: (frame: ArrayBuffer | "cut") => void;
}

export class CallSocket {
  #socket: WebSocket | null = null;
  #attached = false;
  #listening = false;
  #due: Cancel | null = null;
  #again: Cancel | null = null;
  readonly #outbox = new Outbox();
  /** Texts that the log is not known to have, by name: what was on its way when a socket broke is lost. */
  readonly #untaken = new Map<string, string>();

  constructor(private readonly parts: LineParts) {}

  /** Open a socket after `afterMs` and say `hello` first. What was open or due before is dropped. */
  open(url: string, protocol: string, hello: string, afterMs: number): void {
    if (this.#attached) this.parts.play("cut");
    this.#drop();
    const begin = (): void => this.#connect(url, protocol, hello);
    if (afterMs > 0) this.#due = this.parts.later(afterMs, begin);
    else begin();
  }

  #connect(url: string, protocol: string, hello: string): void {
    this.parts.tell({ type: "trying" });
    const socket = this.parts.connect(url, protocol);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    this.#due = this.parts.later(OPEN_MS, () => this.#lose(LOST, ""));
    socket.onopen = () => {
      this.#due?.();
      this.#due = this.parts.later(ANSWER_MS, () => this.#lose(LOST, ""));
      this.parts.tell({ type: "open", protocol: socket.protocol });
      if (socket.protocol === protocol) socket.send(hello);
    };
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data === "string") this.parts.tell({ type: "message", text: data });
      else this.parts.play(data);
    };
    socket.onclose = ({ code, reason }) => this.#lose(code, reason);
  }

  #lose(code: number, reason: string): void {
    this.#drop();
    this.parts.play("cut");
    this.parts.tell({ type: "close", code, reason });
  }

  #drop(): void {
    this.#due?.();
    this.#again?.();
    this.#due = this.#again = null;
    this.#attached = false;
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(1000);
  }

  /** The session has answered: what waited goes out, and then what comes. */
  attach(): void {
    if (this.#socket === null) return;
    this.#due?.();
    this.#due = null;
    this.#attached = true;
    this.#outbox.again([...this.#untaken.values()]);
    this.#pump();
  }

  /** Whether microphone frames are taken. */
  listen(on: boolean): void {
    this.#listening = on;
  }

  /** A microphone frame; the buffer is the caller's again. */
  frame(frame: ArrayBuffer): void {
    if (!this.#listening) return;
    if (this.#free) (this.#socket as WebSocket).send(frame);
    else {
      this.#outbox.frame(frame);
      this.#wait();
    }
  }

  /** Send a message now or on the next socket; one with a name is sent again on each socket until it is `taken`. */
  send(text: string, id?: string): void {
    if (id && this.#untaken.size < HELD_MESSAGES) this.#untaken.set(id, text);
    if (this.#free) (this.#socket as WebSocket).send(text);
    else {
      this.#outbox.message(text);
      this.#wait();
    }
  }

  taken(id: string): void {
    this.#untaken.delete(id);
  }

  /** Hang up: nothing is told of it. */
  close(): void {
    this.#untaken.clear();
    this.#outbox.clear();
    this.#drop();
  }

  get #free(): boolean {
    return this.#attached && this.#outbox.length === 0 && (this.#socket as WebSocket).bufferedAmount <= MAX_UNSENT;
  }

  #wait(): void {
    if (this.#attached && this.#outbox.length > 0) this.#again ??= this.parts.later(AGAIN_MS, () => this.#pump());
  }

  #pump(): void {
    this.#again = null;
    const socket = this.#socket as WebSocket;
    for (let i = 0; i < AT_ONCE && this.#outbox.length > 0 && socket.bufferedAmount <= MAX_UNSENT; i++) socket.send(this.#outbox.shift() as string | ArrayBuffer);
    this.#wait();
  }
}
