/**
 * A gateway's side of the protocol for tests: a log of facts, sockets to it, and `resume` as docs/protocol.md has it.
 * One log may be shared by several gateways. What clients send is kept, in the order it came.
 */
import type { Json } from "../src/socket/protocol";

type Frame = string | ArrayBuffer;

export class Socket {
  binaryType = "blob";
  protocol = "";
  bufferedAmount = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: Frame }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  readonly received: Frame[] = [];
  closedWith: number | null = null;

  constructor(
    readonly url: string,
    private readonly onSent: (socket: Socket, data: Frame) => void,
  ) {}

  send(data: Frame): void {
    const copy = typeof data === "string" ? data : data.slice(0);
    this.received.push(copy);
    this.onSent(this, copy);
  }

  close(code: number): void {
    this.closedWith = code;
  }

  /** The server's doing. */
  accept(protocol = "voxbridge.v1"): void {
    this.protocol = protocol;
    this.onopen?.();
  }

  say(message: Json): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  play(frame: ArrayBuffer): void {
    this.onmessage?.({ data: frame });
  }

  lose(code = 1006): void {
    this.onclose?.({ code, reason: "" });
  }

  get messages(): Json[] {
    return this.received.filter((data) => typeof data === "string").map((data) => JSON.parse(data) as Json);
  }
}

export interface Log {
  sid: string;
  token: string;
  facts: (Json & { seq: number })[];
  /** The log holds nothing at or below this position any more. */
  floor: number;
  ended: boolean;
}

export function newLog(): Log {
  return { sid: "s1", token: "t".repeat(43), facts: [], floor: 0, ended: false };
}

export class Gateway {
  readonly sockets: Socket[] = [];
  /** What clients said to the session, whatever socket it came by. */
  readonly said: Frame[] = [];
  reachable = true;
  /** Sockets are let in, and their first message is left to the test to answer. */
  mute = false;
  attached: Socket | null = null;
  state = "listening";

  constructor(readonly log: Log) {}

  readonly connect = (url: string): WebSocket => {
    const socket = new Socket(url, (from, data) => this.#take(from, data));
    this.sockets.push(socket);
    return socket as unknown as WebSocket;
  };

  get newest(): Socket {
    return this.sockets.at(-1) as Socket;
  }

  /** Let the newest socket in, or turn it away. */
  answer(): void {
    if (this.reachable) this.newest.accept();
    else this.newest.lose();
  }

  /** A fact for the log, told to whoever is attached. Positions leave gaps, as other writers' entries do. */
  fact(message: Json): number {
    const seq = (this.log.facts.at(-1)?.seq ?? 0) + 3;
    this.log.facts.push({ ...message, seq });
    this.attached?.say({ ...message, seq });
    return seq;
  }

  cut(code = 1006): void {
    const socket = this.attached;
    this.attached = null;
    socket?.lose(code);
  }

  #take(socket: Socket, data: Frame): void {
    const message = typeof data === "string" ? (JSON.parse(data) as Json) : null;
    if (this.mute) return;
    if (message?.["type"] === "start" || message?.["type"] === "configure") this.#start(socket);
    else if (message?.["type"] === "resume") this.#resume(socket, message);
    else this.said.push(data);
  }

  #start(socket: Socket): void {
    this.attached = socket;
    this.fact({ type: "setup_complete", sessionId: this.log.sid, mode: "local", resumed: false, resumeToken: this.log.token });
  }

  #resume(socket: Socket, { sessionId, resumeToken, last_seq: last }: Json): void {
    const { log } = this;
    if (sessionId !== log.sid || resumeToken !== log.token || log.ended) {
      socket.say({ type: "error", code: "NOT_FOUND", message: "There is no session to resume with this id and token.", retryable: false });
      socket.lose(4004);
      return;
    }
    this.attached = socket;
    const to = (log.facts.at(-1)?.seq ?? 0) + 1;
    const answer = { type: "resumed", sessionId, mode: "local", to, state: this.state };
    const from = last as number;
    if (from >= log.floor && from <= to) {
      socket.say({ ...answer, recovered: true, from });
      for (const fact of log.facts) if (fact.seq > from) socket.say({ ...fact, ...(fact["type"] === "setup_complete" ? { resumeToken: undefined } : {}) });
      return;
    }
    const transcript = log.facts.flatMap(({ seq, type, role, text, turn = 0 }) => (type === "transcript" ? [{ seq, at_ms: 0, role, text, turn }] : []));
    socket.say({ ...answer, recovered: false, snapshot: { transcript, turns: 7, truncated: true } });
  }
}
