/** Who there is to talk to, as the gateway tells it (docs/protocol.md, sections 7 and 9). Owns the shapes as this app reads them. */
import { ask } from "../http";

export interface Agent {
  name: string;
  role: string;
  description: string;
  scope: string;
  voice: string;
  language: string;
  kind: "realtime" | "cascade";
  /** By part, `provider` or `provider:model`. */
  models: Record<string, string>;
  tools: string[] | null;
  handoffs: string[];
  /** Providers that it needs and that have no key. */
  missing: string[];
}

export interface Stage {
  phase: string;
  agent: string;
  next: string[];
}

export interface Pipeline {
  name: string;
  description: string;
  hand_back: boolean;
  stages: Stage[];
  missing: string[];
}

export interface Problem {
  path: string;
  line: number;
  message: string;
}

export interface Roster {
  agents: Agent[];
  pipelines: Pipeline[];
  problems: Problem[];
}

export interface Voice {
  id: string;
  name: string;
  style: string;
}

export const AGENTS = "/api/agents";

export function handOver(sessionId: string, to: string): Promise<{ seq: number }> {
  return ask(`/api/sessions/${encodeURIComponent(sessionId)}/handoff`, { method: "POST", body: { to, reason: "Asked for in Studio" } });
}
