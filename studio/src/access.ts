/**
 * The token that this tab asks with, where the gateway wants one: from the link that it was opened by, or typed. Owns where it is kept: in the
 * page, and in this tab's session storage where it came by a link, so that a reload goes on. An address never shows it for longer than that.
 */
import { useSyncExternalStore } from "react";

const KEY = "voxbridge.token";
const LINK = /^#token=([\w.~-]+)$/;

let token = "";
let locked = false;
let round = 0;
const listeners = new Set<() => void>();

/** Storage throws where the browser forbids it. */
function remembered(): string {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function remember(given: string): void {
  try {
    sessionStorage.setItem(KEY, given);
  } catch {
    // Then a reload asks again.
  }
}

/** Take the token of the link, or of this tab before it was reloaded. */
export function arrive(): void {
  const given = LINK.exec(location.hash)?.[1];
  if (given === undefined) {
    token = remembered();
    return;
  }
  token = given;
  remember(given);
  history.replaceState(history.state, "", location.pathname + location.search);
}

/** From now on this page asks with this one. */
export function unlock(given: string): void {
  token = given.trim();
  remember("");
  round += 1;
  locked = false;
  tell();
}

/** The gateway wants a token, or another one. */
export function lock(): void {
  if (locked) return;
  locked = true;
  tell();
}

export function accessToken(): string {
  return token;
}

/** Whether the gateway wants a token that this page does not have. */
export function useLocked(): boolean {
  return useSyncExternalStore(subscribe, () => locked);
}

/** How many tokens were given: what was asked before is asked again. */
export function useRound(): number {
  return useSyncExternalStore(subscribe, () => round);
}

function tell(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
