/** Pages that are opened while no call is up: the agent of the next one may know them. In a call the client library tells them itself. */
import { useEffect } from "react";
import { ask } from "../http";

/** A page that is only passed is not told. */
const SETTLE_MS = 400;

export function useVisits(path: string, title: string, quiet: boolean, locked: boolean): void {
  useEffect(() => {
    if (!quiet || locked) return;
    const timer = setTimeout(() => {
      // It is told best effort: the next page is told whatever became of this one.
      ask("/api/vox/awareness", { method: "POST", body: { event_type: "page_visit", page: path, title } }).catch(() => undefined);
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [path, title, quiet, locked]);
}
