/** Whether the gateway and what it needs are there. Owns the polling: once at the start, every 5 s while something is missing. */
import { useEffect, useState } from "react";

const AGAIN_MS = 5000;

export type Readiness =
  | { kind: "unknown" }
  | { kind: "ready" }
  | { kind: "unreachable" }
  | { kind: "not_ready"; failing: { name: string; detail: string }[] };

interface Body {
  ready?: boolean;
  dependencies?: Record<string, { ok?: boolean; detail?: string }>;
}

async function look(signal: AbortSignal): Promise<Readiness> {
  try {
    const answer = await fetch("/readyz", { signal, headers: { accept: "application/json" } });
    const body = (await answer.json()) as Body;
    if (body.ready === true) return { kind: "ready" };
    const failing = Object.entries(body.dependencies ?? {}).flatMap(([name, { ok, detail }]) => (ok === true ? [] : [{ name, detail: detail ?? "" }]));
    return { kind: "not_ready", failing };
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
      if (next.kind !== "ready") timer = setTimeout(() => void round(), AGAIN_MS);
    };
    void round();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, []);
  return readiness;
}
