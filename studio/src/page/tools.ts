/**
 * The functions that this app answers in a call, by name. Their code is loaded behind the first paint.
 * Owns which call they speak of: the app has one.
 */
import type { Json, Tools, VoiceAgent } from "voxbridge/react";

const NAMES = ["navigate_page", "get_current_page", "get_workspace_state", "read_page_content", "switch_model", "switch_theme"] as const;

let agent: VoiceAgent | null = null;

/** Load the code, and answer for this call from now on. */
export function answerFor(call: VoiceAgent): void {
  agent = call;
  // Without it nothing is missing yet: a call tries again, and says what is wrong.
  void import("./functions").catch(() => undefined);
}

export function currentCall(): VoiceAgent | null {
  return agent;
}

export function isPageFunction(name: string): boolean {
  return (NAMES as readonly string[]).includes(name);
}

/** Answer a function of the page, asked for by a model or by a click. */
export async function runHere(name: string, args: Json): Promise<unknown> {
  const { answers } = await import("./functions");
  const run = answers[name];
  if (run === undefined) throw new Error(`this page has no ${name}`);
  return (typeof run === "function" ? run : run.run)(args);
}

export const PAGE_TOOLS: Tools = Object.fromEntries(NAMES.map((name) => [name, (args: Json) => runHere(name, args)]));
