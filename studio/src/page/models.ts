/** Which model somebody means by a word. Pure. */
import type { Mode } from "voxbridge/react";
import type { Agent } from "../agents/api";
import { MODES } from "../talk/choice";

export interface Meant {
  mode: Mode;
  name: string;
  /** The name of one model; empty for the usual one of the mode. */
  model: string;
  usual: string;
  /** What agents' files call the provider. */
  provider: string;
}

const WORDS: Record<Mode, { provider: string; said: RegExp; model: RegExp }> = {
  local: { provider: "local", said: /\b(local|offline|this machine|this computer|own models?|installation)\b/, model: /^local[\w.-]*$/ },
  gemini: { provider: "gemini", said: /\b(gemini|google)\b/, model: /^gemini-[\w.-]+$/ },
  openai: { provider: "openai", said: /\b(open ?ai|gpt|chat ?gpt)\b/, model: /^gpt-[\w.-]+$/ },
  claude: { provider: "anthropic", said: /\b(claude|anthropic)\b/, model: /^claude-[\w.-]+$/ },
  echo: { provider: "", said: /\becho\b/, model: /^echo$/ },
};
const MODEL_LIMIT = 64;

/** The mode and the model that these words name. Throws a sentence with those there are. */
export function meant(words: string): Meant {
  const said = words.trim().toLowerCase();
  for (const { mode, name, model: usual } of MODES) {
    const { provider, said: alias, model } = WORDS[mode];
    if (model.test(said) && said.length <= MODEL_LIMIT) return { mode, name, model: said === mode || said === usual ? "" : said, usual, provider };
    if (alias.test(said)) return { mode, name, model: "", usual, provider };
  }
  throw new Error(`there is no model ${JSON.stringify(words.slice(0, MODEL_LIMIT))}; there is ${MODES.map(({ name }) => name).join(", ")}`);
}

/** The agent of a team that is on that model, the present one first. */
export function agentOn({ provider, model }: Meant, agents: readonly Agent[], present: string): Agent | null {
  const fits = agents.filter(({ models, missing }) => {
    const [one = "local", ...rest] = (models["realtime"] ?? models["llm"] ?? "local").split(":");
    return missing.length === 0 && one === provider && (model === "" || rest.join(":") === model);
  });
  return fits.find(({ name }) => name === present) ?? fits[0] ?? null;
}
