/** react.js: the hook. Owns one agent for the life of a component; safe on the server and under StrictMode. */
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { VoiceAgent } from "./agent";
import type { Approval, Entry, Task } from "./entries";
import type { VoiceAgentOptions } from "./options";
import type { Snapshot } from "./state";
import { openApprovals, openTasks } from "./work";

export * from "./client";

/** A line of the conversation, with what was done for it. */
export interface Message {
  role: "user" | "assistant";
  text: string;
  /** What was made and not heard, since somebody interrupted it. */
  unheard: string;
  /** "Using NAME" for each tool that was called for a reply. */
  steps: readonly string[];
}

export interface UseVoiceAgent extends Snapshot {
  agent: VoiceAgent;
  /** What was said, oldest first, without the words that are being said now. */
  messages: readonly Message[];
  /** What the person is saying now. */
  transcript: string;
  /** Stop the agent's speech. */
  cancel: () => void;
  /** Begin the conversation anew. */
  reset: () => void;
  /** Those that are open, oldest first: `agent.answerApproval(id, yes)` answers one. */
  approvals: readonly Approval[];
  /** Those that run, oldest first: `agent.cancelTask(id)` ends one. */
  tasks: readonly Task[];
}

const leaving = new WeakMap<VoiceAgent, ReturnType<typeof setTimeout>>();

/** Options of the hook; `config` may hold those of the agent, as a file of its own has them. */
export type UseVoiceAgentOptions = VoiceAgentOptions & { config?: VoiceAgentOptions };

/**
 * The agent and its snapshot. Options count when a call starts: `agent.start(options)` replaces them. A call that this tab had
 * before the page was loaded anew goes on by itself; `resumeWindow: 0` switches that off.
 */
export function useVoiceAgent({ config, ...options }: UseVoiceAgentOptions = {}): UseVoiceAgent {
  const [agent] = useState(() => new VoiceAgent({ ...config, ...options }));
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
  const said = useMemo(() => messagesOf(conversation), [conversation]);
  const calls = useMemo(() => ({ cancel: () => agent.interrupt(), reset: () => agent.reset() }), [agent]);
  return { ...snapshot, ...said, ...calls, agent, approvals, tasks };
}

/** The conversation as lines of text. */
export function messagesOf(conversation: readonly Entry[]): { messages: Message[]; transcript: string } {
  const messages: Message[] = [];
  let transcript = "";
  let steps: string[] = [];
  for (const entry of conversation) {
    if (entry.kind === "call") steps.push(`Using ${entry.name}`);
    if (entry.kind !== "said" || entry.text + entry.unheard === "") continue;
    if (entry.role === "user" && !entry.final) transcript = entry.text;
    else messages.push({ role: entry.role, text: entry.text, unheard: entry.cut ? "" : entry.unheard, steps: entry.role === "assistant" ? steps : [] });
    if (entry.role === "assistant") steps = [];
  }
  return { messages, transcript };
}
