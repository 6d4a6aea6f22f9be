/**
 * News of the page that is shown: another address by the History API, and errors that nobody caught.
 * Owns the hooks, and takes them out again. The title is read a moment later: applications set it after the address.
 */
import type { ScreenWatcher } from "./call/screen";
import type { Unsubscribe } from "./events";

export const SETTLE_MS = 150;

export function watchPage({ visited, failed }: ScreenWatcher): Unsubscribe {
  const listening = new AbortController();
  const { signal } = listening;
  const { history } = window;
  // eslint-disable-next-line @typescript-eslint/unbound-method -- each is called with its history, and put back as it was
  const { pushState, replaceState } = history;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const moved = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => visited(location.href, document.title), SETTLE_MS);
  };
  const hooked = (original: History["pushState"]): History["pushState"] => function push(this: History, ...given) {
    original.apply(this, given);
    moved();
  };
  const mine = { pushState: hooked(pushState), replaceState: hooked(replaceState) };
  Object.assign(history, mine);
  addEventListener("popstate", moved, { signal });
  addEventListener("hashchange", moved, { signal });
  addEventListener("error", ({ error, message }) => failed(error instanceof Error ? error.name : "Error", error instanceof Error ? error.message : message), { signal });
  addEventListener("unhandledrejection", ({ reason }) => failed(reason instanceof Error ? reason.name : "UnhandledRejection", reason instanceof Error ? reason.message : String(reason)), { signal });
  moved();
  return () => {
    listening.abort();
    clearTimeout(timer);
    // Whoever hooked in later keeps its own; ours then only passes calls on.
    if (history.pushState === mine.pushState) history.pushState = pushState;
    if (history.replaceState === mine.replaceState) history.replaceState = replaceState;
  };
}
