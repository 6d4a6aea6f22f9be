/**
 * The functions that this app answers in a call, by name. Their code is loaded behind the first paint.
 * Owns which call they speak of: the app has one.
 */
import type { Json, Tools, VoiceAgent } from "voxbridge/react";
import { ROUTES } from "../rooms";

const NAMES = ["navigate_page", "get_current_page", "get_workspace_state", "read_page_content", "steer_tour", "switch_model", "switch_theme"] as const;

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

/** What arguments of these may name: models choose among it. */
const NAMED: Record<string, [argument: string, values: readonly string[]]> = {
  navigate_page: ["path", Object.entries(ROUTES).flatMap(([path, name]) => (path.includes(":") ? [] : [name]))],
  switch_model: ["model", ["local", "gemini", "openai", "claude"]],
};

export const PAGE_TOOLS: Tools = Object.fromEntries(NAMES.map((name) => [name, toolOf(name)]));

function toolOf(name: string): Tools[string] {
  const run = (args: Json): unknown => runHere(name, args);
  const named = NAMED[name];
  if (named === undefined) return run;
  const [argument, values] = named;
  return { run, parameters: { type: "object", properties: { [argument]: { type: "string", enum: values } }, required: [argument] } };
}
