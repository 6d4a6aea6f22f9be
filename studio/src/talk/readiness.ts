/** How the gateway and what it needs stand. Owns the polling: every 5 s while something is wrong, every 15 s else. */
import { useEffect, useState } from "react";
import { credentials } from "../http";

const AGAIN_MS = 5000;
const SELDOM_MS = 15000;

export type Readiness =
  | { kind: "unknown" }
  | { kind: "ready" }
  | { kind: "degraded"; failing: { name: string; detail: string }[] }
  | { kind: "unreachable" }
  | { kind: "not_ready"; failing: { name: string; detail: string }[] };

interface Body {
  ready?: boolean;
  dependencies?: Record<string, { ok?: boolean; state?: string; detail?: string }>;
}

async function look(signal: AbortSignal): Promise<Readiness> {
  try {
    const answer = await fetch("/readyz", { signal, headers: { accept: "application/json", ...credentials() } });
    const body = (await answer.json()) as Body;
    const strained = Object.entries(body.dependencies ?? {}).filter(([, { ok, state }]) => ok !== true || state === "degraded");
    if (body.ready === true && strained.length === 0) return { kind: "ready" };
    const failing = strained.map(([name, { detail }]) => ({ name, detail: detail ?? "" }));
    return { kind: body.ready === true ? "degraded" : "not_ready", failing };
  } catch {
    return { kind: "unreachable" };
  }
}

export function useReadiness(): Readiness {
  const [readiness, setReadiness] = useState<Readiness>({ kind: "unknown" });
  useEffect(() => {
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const round = async (): Promise<void> => {
      const next = await look(leaving.signal);
      if (leaving.signal.aborted) return;
      setReadiness(next);
      timer = setTimeout(() => void round(), next.kind === "ready" ? SELDOM_MS : AGAIN_MS);
    };
    void round();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, []);
  return readiness;
}
