/**
 * What the parts of a call share: its snapshot, its socket, and who listens. Owns these three.
 * Does not own what happens on them: agent.ts and the other modules of this folder do.
 */
import type { PlaybackReport } from "../audio/playback-queue";
import type { Levels } from "../audio/agent-audio";
import { type AgentError, type AgentErrorFields } from "../errors";
import { Emitter } from "../events";
import type { Platform, Wire } from "../platform";
import type { ClientMessage, ServerMessage } from "../socket/protocol";
import { INITIAL, type Snapshot } from "../state";

export type AgentEvents = {
  [Message in ServerMessage as Message["type"]]: Message;
} & {
  change: Snapshot;
  levels: Levels;
  playback: PlaybackReport;
  failure: AgentError;
  devices: undefined;
};

export class CallCore {
  readonly emitter = new Emitter<AgentEvents>();
  snapshot: Snapshot = INITIAL;
  connection: Wire | null = null;

  constructor(readonly platform: Platform) {}

  get inCall(): boolean {
    return !["idle", "closed"].includes(this.snapshot.connection);
  }

  become(snapshot: Snapshot): void {
    if (snapshot === this.snapshot) return;
    this.snapshot = snapshot;
    this.emitter.emit("change", snapshot);
  }

  set(change: Partial<Snapshot>): void {
    this.become({ ...this.snapshot, ...change });
  }

  fail(error: AgentError): void {
    this.set({ error: fields(error) });
    this.emitter.emit("failure", error);
  }

  send(message: ClientMessage): void {
    this.connection?.send(message);
  }
}

/** An error as the snapshot has it. */
export function fields({ code, message, action, retryable }: AgentErrorFields): AgentErrorFields {
  return { code, message, action, retryable };
}
