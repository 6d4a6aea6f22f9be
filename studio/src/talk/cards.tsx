/** Tool calls and tasks as quiet cards that open. */
import type { ReactElement } from "react";
import type { Call, Task } from "voxbridge/react";
import { Icon } from "../icons";
import { duration, functionName } from "../words";

const STATUS_WORDS = { running: "running", done: "done", failed: "failed", cancelled: "cancelled" } as const;

function Json({ label, value }: { label: string; value: unknown }): ReactElement {
  return (
    <div className="card-json">
      <span className="label">{label}</span>
      <pre tabIndex={0} role="region" aria-label={label}>{JSON.stringify(value, null, 2)}</pre>
    </div>
  );
}

/** The arguments in short, for the closed card. */
function brief(args: Record<string, unknown>): string {
  return Object.values(args)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(", ");
}

export function Card({ entry }: { entry: Call | Task }): ReactElement {
  const isCall = entry.kind === "call";
  return (
    <details className="card" data-status={entry.status}>
      <summary>
        <Icon name={isCall ? "tool" : "task"} size={16} />
        <span className="card-name">{functionName(entry.name)}</span>
        <span className="card-brief">{isCall ? brief(entry.args) : "in the background"}</span>
        <span className="card-status">{entry.ms !== null && entry.status === "done" ? duration(entry.ms) : STATUS_WORDS[entry.status]}</span>
      </summary>
      {isCall && <Json label="Arguments" value={entry.args} />}
      {entry.status === "done" || entry.status === "failed" ? <Json label="Result" value={entry.result} /> : <p className="card-wait">No result yet.</p>}
    </details>
  );
}
