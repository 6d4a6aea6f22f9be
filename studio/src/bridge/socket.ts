/**
 * The socket to terminals. Owns its ticket, the connecting again, and the order of frames: a viewer that misses a frame attaches again and is
 * sent the whole screen. Without a connection the programs go on, and the page says so; what is typed then is not sent.
 */
import { ask, ReadError, willPass } from "../http";
import { type Card, COLUMNS, type Frame, frameOf, ROWS } from "./cards";

const AGAIN_MS = 1000;
/** Messages with keys that wait for a channel. */
const KEYS_LIMIT = 256;

/** A view that draws one terminal. */
export interface Viewer {
  screen: (data: Uint8Array, columns: number, rows: number) => void;
  output: (data: Uint8Array) => void;
}

interface Attached {
  viewer: Viewer;
  channel: number | null;
  run: number;
  offset: number;
  columns: number;
  rows: number;
  /** A whole screen is on its way: what comes before it is of no use. */
  awaited: boolean;
  /** Keys that were typed before the gateway gave a channel. */
  keys: Uint8Array[];
}

export interface Fleet {
  cards: Card[];
  connected: boolean;
  /** The cards came at least once. */
  known: boolean;
  /** The name of this connection, where terminals say who has their keys. */
  connection: string;
  isolation: string;
  /** What is wrong with the connection, or with the last wish. */
  trouble: string;
  /** Who asked is not allowed to. */
  refused: ReadError | null;
}

type Told =
  | { type: "cards"; cards: Card[]; isolation: string; connection: string }
  | { type: "card"; card: Card }
  | { type: "gone"; id: string }
  | { type: "attached"; id: string; channel: number; columns: number; rows: number }
  | { type: "error"; code: string; message: string; about: string };

export const NOBODY: Fleet = { cards: [], connected: false, known: false, connection: "", isolation: "", trouble: "", refused: null };

export class TerminalSocket {
  private socket: WebSocket | null = null;
  private timer = 0;
  private over = false;
  private readonly attached = new Map<string, Attached>();
  private fleet = NOBODY;
  private changed: (fleet: Fleet) => void = () => undefined;

  /** Connect, and say whatever changes; returns what ends that. */
  start(changed: (fleet: Fleet) => void): () => void {
    this.changed = changed;
    this.over = false;
    void this.open();
    return () => {
      this.over = true;
      clearTimeout(this.timer);
      this.socket?.close();
      this.socket = null;
    };
  }

  attach(id: string, viewer: Viewer): void {
    this.attached.set(id, { viewer, channel: null, run: 0, offset: 0, columns: COLUMNS, rows: ROWS, awaited: true, keys: [] });
    this.say({ type: "attach", id });
  }

  detach(id: string): void {
    this.attached.delete(id);
    this.say({ type: "detach", id });
  }

  order(type: "take" | "give" | "see", id: string): void {
    this.say({ type, id });
  }

  size(id: string, columns: number, rows: number): void {
    this.say({ type: "size", id, columns, rows });
  }

  type(id: string, keys: Uint8Array): void {
    const found = this.attached.get(id);
    if (found === undefined || !this.fleet.connected) return;
    const { channel } = found;
    if (channel === null) {
      if (found.keys.length < KEYS_LIMIT) found.keys.push(keys);
      return;
    }
    const message = new Uint8Array(keys.length + 1);
    message[0] = channel;
    message.set(keys, 1);
    this.socket?.send(message);
  }

  private async open(): Promise<void> {
    try {
      const { ticket } = await ask<{ ticket: string }>("/api/terminals/tickets", { method: "POST", body: { role: "type" } });
      if (this.over) return;
      const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/terminals?ticket=${encodeURIComponent(ticket)}`);
      socket.binaryType = "arraybuffer";
      socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
        if (this.socket !== socket) return;
        if (typeof data === "string") this.take(JSON.parse(data) as Told);
        else this.draw(data);
      };
      socket.onclose = () => {
        if (this.socket === socket) this.again("The connection to the terminals was lost. The programs go on; this page connects again.");
      };
      this.socket = socket;
    } catch (cause) {
      if (cause instanceof ReadError && !willPass(cause)) this.tell({ refused: cause });
      else this.again(cause instanceof Error ? cause.message : String(cause));
    }
  }

  private again(trouble: string): void {
    this.socket = null;
    if (this.over) return;
    for (const found of this.attached.values()) Object.assign(found, { channel: null, awaited: false, keys: [] });
    this.tell({ connected: false, trouble });
    this.timer = window.setTimeout(() => void this.open(), AGAIN_MS);
  }

  private take(told: Told): void {
    const { cards } = this.fleet;
    if (told.type === "cards") {
      this.tell({ cards: told.cards, isolation: told.isolation, connection: told.connection, connected: true, known: true, trouble: "", refused: null });
      for (const [id, found] of this.attached) this.anew(id, found);
    } else if (told.type === "card") {
      const { card } = told;
      const known = cards.some(({ id }) => id === card.id);
      this.tell({ cards: known ? cards.map((one) => (one.id === card.id ? card : one)) : [...cards, card] });
      const found = this.attached.get(card.id);
      // Another size wraps its lines anew: the screen is sent as the program's own emulator has it.
      if (found !== undefined && found.channel !== null && (found.columns !== (card.columns ?? COLUMNS) || found.rows !== (card.rows ?? ROWS))) this.anew(card.id, found);
    } else if (told.type === "gone") {
      this.tell({ cards: cards.filter(({ id }) => id !== told.id) });
    } else if (told.type === "attached") {
      const { channel, columns, rows } = told;
      const found = this.attached.get(told.id);
      if (found !== undefined) {
        Object.assign(found, { channel, columns, rows });
        for (const keys of found.keys.splice(0)) this.type(told.id, keys);
      }
    } else if (told.about === "" && told.code === "UNAVAILABLE") {
      const { socket } = this;
      this.again(told.message);
      socket?.close();
    } else {
      const found = this.attached.get(told.about);
      if (found !== undefined) found.awaited = false;
      this.tell({ trouble: told.message });
    }
  }

  private draw(message: ArrayBuffer): void {
    const frame = frameOf(message);
    if (frame === null) return;
    for (const [id, found] of this.attached) if (found.channel === frame.channel) this.drawn(id, found, frame);
  }

  private drawn(id: string, found: Attached, { keyframe, run, offset, data }: Frame): void {
    if (keyframe) {
      found.viewer.screen(data, found.columns, found.rows);
      Object.assign(found, { run, offset, awaited: false });
    } else if (run === found.run && offset <= found.offset) {
      // After a restart of the service a frame may begin with what was drawn already.
      const fresh = data.subarray(found.offset - offset);
      if (fresh.length > 0) found.viewer.output(fresh);
      found.offset += fresh.length;
    } else if (!found.awaited) {
      this.anew(id, found);
    }
  }

  /** Ask for the whole screen. */
  private anew(id: string, found: Attached): void {
    found.awaited = true;
    this.say({ type: "attach", id });
  }

  private say(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private tell(change: Partial<Fleet>): void {
    this.fleet = { ...this.fleet, ...change };
    this.changed(this.fleet);
  }
}
