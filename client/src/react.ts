/** react.js: the hook. Owns one agent for the life of a component; safe on the server and under StrictMode. */
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { VoiceAgent } from "./agent";
import type { Approval, Task } from "./entries";
import type { VoiceAgentOptions } from "./options";
import type { Snapshot } from "./state";
import { openApprovals, openTasks } from "./work";

export * from "./client";

export interface UseVoiceAgent extends Snapshot {
  agent: VoiceAgent;
  /** Those that are open, oldest first: `agent.answerApproval(id, yes)` answers one. */
  approvals: readonly Approval[];
  /** Those that run, oldest first: `agent.cancelTask(id)` ends one. */
  tasks: readonly Task[];
}

const leaving = new WeakMap<VoiceAgent, ReturnType<typeof setTimeout>>();

/**
 * The agent and its snapshot. Options count when a call starts: `agent.start(options)` replaces them. A call that this tab had
 * before the page was loaded anew goes on by itself; `resumeWindow: 0` switches that off.
 */
export function useVoiceAgent(options: VoiceAgentOptions = {}): UseVoiceAgent {
  const [agent] = useState(() => new VoiceAgent(options));
  const snapshot = useSyncExternalStore(agent.subscribe, agent.getSnapshot, agent.getSnapshot);
  useEffect(() => {
    // StrictMode unmounts and mounts again at once: only a component that stays away ends the call.
    clearTimeout(leaving.get(agent));
    agent.resume();
    return () => void leaving.set(agent, setTimeout(() => agent.end(), 0));
  }, [agent]);
  const { conversation } = snapshot;
  const approvals = useMemo(() => openApprovals({ conversation }), [conversation]);
  const tasks = useMemo(() => openTasks({ conversation }), [conversation]);
  return { ...snapshot, agent, approvals, tasks };
}
