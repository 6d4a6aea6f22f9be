/** What this app answers: its routes, its theme, its choice of a model. */
import { pageFunctions } from "voxbridge/page";
import type { PageTool } from "voxbridge/react";
import { navigate } from "wouter/use-browser-location";
import { AGENTS, handOver, type Roster } from "../agents/api";
import { ask, complaint } from "../http";
import { ROUTES } from "../rooms";
import { choose, current } from "../theme";
import { named, ofMode, remember, remembered } from "../talk/choice";
import { agentName, modelName } from "../words";
import { agentOn, meant, type Meant } from "./models";
import { currentCall } from "./tools";

/** A call of a function has 5 s. */
const ASK_MS = 2_000;

const own: Record<string, PageTool> = {
  steer_tour: async ({ action }) => (await import("../tour/tours")).steer(action),
};

export const answers: Record<string, PageTool> = { ...own, ...pageFunctions({
  routes: ROUTES,
  navigate,
  theme: { get: current, set: choose },
  call: () => currentCall()?.getSnapshot(),
  state: () => ({ next_call: named(remembered()) }),
  switchModel,
}) };

async function switchModel(words: string): Promise<Record<string, unknown>> {
  const wanted = meant(words);
  const snapshot = currentCall()?.getSnapshot();
  if (snapshot?.connection === "connected" && snapshot.sessionId !== null && snapshot.speaker.agents.length > 0) {
    const handed = await handedTo(wanted, snapshot.sessionId, snapshot.speaker);
    if (handed !== null) return handed;
  }
  await checkKey(wanted);
  remember({ ...ofMode(wanted.mode), model: wanted.model });
  return { applies: "next_call", mode: wanted.mode, model: wanted.model || wanted.usual, spoken: `Your next call is with ${wanted.name}. This one goes on as it is.` };
}

/** Hand the call over to an agent on that model; null where its team has none. */
async function handedTo(wanted: Meant, sessionId: string, { agent, agents }: { agent: string; agents: readonly string[] }): Promise<Record<string, unknown> | null> {
  const roster = await ask<Roster>(AGENTS, { signal: AbortSignal.timeout(ASK_MS) }).catch(() => null);
  const to = agentOn(wanted, (roster?.agents ?? []).filter(({ name }) => agents.includes(name)), agent);
  if (to === null) return null;
  const on = modelName(to.models["realtime"] ?? to.models["llm"] ?? "local");
  if (to.name === agent) return { applies: "now", agent, model: on, spoken: `You are talking to ${agentName(agent)} on ${on} already.` };
  try {
    await handOver(sessionId, to.name);
  } catch (cause) {
    throw new Error(complaint(cause, "hand a call over"), { cause });
  }
  return { applies: "now", agent: to.name, model: on, spoken: `${agentName(to.name)} takes over, on ${on}.` };
}

async function checkKey({ mode, name }: Meant): Promise<void> {
  if (mode === "local" || mode === "echo") return;
  const status = await ask<Record<string, unknown>>("/api/vox/status", { signal: AbortSignal.timeout(ASK_MS) }).catch(() => null);
  if (status !== null && status[`${mode}_available`] !== true) throw new Error(`${name} has no key here; set one in Keys`);
}
