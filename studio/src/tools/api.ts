/** The functions of the installation, and calls of them (docs/tools.md). Owns the shapes as this app reads them. */
import { ask } from "../http";
import { isPageFunction, runHere } from "../page/tools";
import type { Schema } from "./schema";

export interface FunctionCard {
  name: string;
  description: string;
  parameters: Schema;
  kind: "server" | "browser" | "async";
  timeout_s: number;
  effect: "read" | "write" | "destructive";
  approval: "never" | "first" | "always";
  category: string;
  listed: boolean;
}

export interface Catalogue {
  functions: FunctionCard[];
  count: number;
}

export const FUNCTIONS = "/api/vox/functions";
/** Beyond a function's own time: the gateway answers first. */
const MARGIN_MS = 10_000;

/** The result of a call; what fails is thrown. A function of the page is answered by this one. */
export async function run({ name, kind, timeout_s }: FunctionCard, args: Record<string, unknown>): Promise<unknown> {
  if (kind === "browser" && isPageFunction(name)) return runHere(name, args);
  const signal = AbortSignal.timeout(timeout_s * 1000 + MARGIN_MS);
  const answer = await ask<{ result?: unknown }>(`/api/vox/function/${encodeURIComponent(name)}`, { method: "POST", body: { args }, signal });
  return answer.result ?? answer;
}
