/** Asking the gateway over HTTP, with the token of this page where it has one. */
import { useCallback, useEffect, useState } from "react";
import { accessToken, lock } from "./access";

const AGAIN_MS = 5000;

/** The gateway said no, or nothing; `status` is 0 where it did not answer. */
export class ReadError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
    /** The argument that was wrong, where it was one. */
    readonly field = "",
  ) {
    super(message);
  }
}

/** Whether it may be otherwise in a moment. What was refused, or is not there, stays so however often it is asked for. */
export function willPass({ status }: ReadError): boolean {
  return status === 0 || status === 429 || status >= 500;
}

/** Whether the token of this page counts, and is not for that. */
export function isRefused(cause: unknown): boolean {
  return cause instanceof ReadError && cause.code === "PERMISSION_DENIED";
}

/** What to tell the person who wanted to do something, and what they can do. */
export function complaint(cause: unknown, doing: string): string {
  if (isRefused(cause)) return `This token can't ${doing}. The administrators' token can: give it in Keys.`;
  return cause instanceof Error ? cause.message : String(cause);
}

/** The headers that say who asks. */
export function credentials(): Record<string, string> {
  const token = accessToken();
  return token === "" ? {} : { authorization: `Bearer ${token}` };
}

interface Asked {
  signal?: AbortSignal;
  method?: "GET" | "POST" | "PUT" | "DELETE";
  body?: unknown;
  /** The answer has no JSON. */
  bare?: boolean;
}

/** The answer's JSON; undefined where it has none. */
export async function ask<Body>(path: string, { signal, method = "GET", body, bare = false }: Asked = {}): Promise<Body> {
  let answer: Response;
  const headers = { accept: "application/json", ...credentials(), ...(body === undefined ? {} : { "content-type": "application/json" }) };
  try {
    answer = await fetch(path, { method, headers, signal: signal ?? null, body: body === undefined ? null : JSON.stringify(body) });
  } catch (cause) {
    if (signal?.aborted === true) throw cause;
    throw new ReadError(0, "The gateway does not answer.");
  }
  if (!answer.ok) {
    if (answer.status === 401) lock();
    const said = (await answer.json().catch(() => null)) as { message?: string; code?: string; field?: string | null } | null;
    throw new ReadError(answer.status, said?.message ?? `The gateway answered ${answer.status}.`, said?.code, said?.field ?? "");
  }
  return (bare || answer.status === 204 ? undefined : await answer.json()) as Body;
}

export interface Loaded<Value> {
  value: Value | null;
  error: ReadError | null;
  /** When the value came, in ms of the Unix clock. */
  at: number;
  reload: () => void;
}

/** What a path answers; asked again every 5 s while it cannot be had, and while `watching`. */
export function useLoaded<Value>(path: string, watching = false): Loaded<Value> {
  const [loaded, setLoaded] = useState<Omit<Loaded<Value>, "reload">>({ value: null, error: null, at: 0 });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  useEffect(() => {
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    ask<Value>(path, { signal: leaving.signal })
      .then((value) => {
        setLoaded({ value, error: null, at: Date.now() });
        if (watching) timer = setTimeout(reload, AGAIN_MS);
      })
      .catch((cause: unknown) => {
        if (!(cause instanceof ReadError)) return;
        setLoaded((before) => ({ ...before, error: cause }));
        if (willPass(cause)) timer = setTimeout(reload, AGAIN_MS);
      });
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [path, round, watching, reload]);
  return { ...loaded, reload };
}
