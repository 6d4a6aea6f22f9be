/** Says that a list is being read, or that it cannot be. */
import type { ReactElement } from "react";
import { isRefused, type Loaded, willPass } from "../http";
import { Notice } from "../notice";
import { Unlock } from "../unlock";

export function Listed({ loaded: { value, error }, what }: { loaded: Loaded<unknown>; what: string }): ReactElement | null {
  if (error !== null && isRefused(error)) return <Unlock administrator cannot={`see ${what}`} />;
  if (error !== null) return <Notice title={error.message}>{willPass(error) && <p>This page looks again every 5 seconds.</p>}</Notice>;
  return value === null ? <p className="empty-line" role="status">Reading {what}…</p> : null;
}
