/** Which room is shown. Owns the address bar; a handful of paths needs no library. */
import { type MouseEvent, type ReactElement, type ReactNode, useSyncExternalStore } from "react";

const MOVED = "voxbridge-moved";

function subscribe(listener: () => void): () => void {
  addEventListener("popstate", listener);
  addEventListener(MOVED, listener);
  return () => {
    removeEventListener("popstate", listener);
    removeEventListener(MOVED, listener);
  };
}

export function navigate(path: string): void {
  history.pushState(null, "", path);
  dispatchEvent(new Event(MOVED));
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

interface LinkProps {
  to: string;
  className?: string;
  current?: boolean;
  label?: string;
  children: ReactNode;
}

export function Link({ to, className, current, label, children }: LinkProps): ReactElement {
  const follow = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} className={className} aria-label={label} aria-current={current === true ? "page" : undefined} onClick={follow}>
      {children}
    </a>
  );
}
