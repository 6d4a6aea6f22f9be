/** Tool calls, tasks and answered requests as quiet cards that open. */
import { type ReactElement, useState } from "react";
import type { Approval, Call } from "voxbridge/react";
import { Link } from "wouter";
import { Icon } from "../icons";
import { complaint } from "../http";
import { undo } from "../tools/work-api";
import { duration, functionName } from "../words";
import { became, isLate, progress, type Shown } from "./work";

const STATUS_WORDS = { running: "running", done: "done", failed: "failed", cancelled: "cancelled" } as const;

type ShownTask = Extract<Shown, { kind: "task" }>;

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

/** Take back what a call did; what became of it is said in the place of the button. */
function Undo({ call, name, undo: can }: { call: string; name: string; undo: Call["undo"] }): ReactElement | null {
  const [told, setTold] = useState("");
  const [asked, setAsked] = useState(false);
  if (can === null) return null;
  const ask = async (): Promise<void> => {
    if (asked) return;
    setAsked(true);
    try {
      setTold(await undo(call));
    } catch (cause) {
      setTold(complaint(cause, `take back ${functionName(name)}`));
      setAsked(false);
    }
  };
  const words = can === "done" ? "Taken back." : told;
  return (
    <div className="card-now">
      <span className="card-message" role="status">{words}</span>
      {can === "possible" && <button type="button" className="button" aria-label={`Undo ${functionName(name)}`} aria-disabled={asked} onClick={() => void ask()}>Undo</button>}
    </div>
  );
}

export function CallCard({ entry }: { entry: Call }): ReactElement {
  const { args, id, ms, name, result, status, undo: can } = entry;
  return (
    <div className="card" data-status={status}>
      <details>
        <summary>
          <Icon name="tool" size={16} />
          <span className="card-name">{functionName(name)}</span>
          <span className="card-brief">{brief(args)}</span>
          <span className="card-status">{ms !== null && status === "done" ? duration(ms) : STATUS_WORDS[status]}</span>
        </summary>
        <Json label="Arguments" value={args} />
        {status === "done" || status === "failed" ? <Json label="Result" value={result} /> : <p className="card-wait">No result yet.</p>}
      </details>
      {id !== null && <Undo call={id} name={name} undo={can} />}
    </div>
  );
}

export function ApprovalCard({ entry }: { entry: Approval }): ReactElement {
  return (
    <details className="card" data-status={entry.outcome} data-late={isLate(entry)}>
      <summary>
        <Icon name="ask" size={16} />
        <span className="card-name">{functionName(entry.name)}</span>
        <span className="card-brief card-became">{became(entry)}</span>
      </summary>
      <Json label="Arguments" value={entry.args} />
    </details>
  );
}

const OVER: Record<string, string> = {
  cancelled: "It was cancelled. What it had done by then stays.",
  interrupted: "Its executor stopped in the middle: how far it came is not known, and it is not run again.",
  left: "The call ended before it did.",
};

export function TaskCard({ entry, cancel }: { entry: ShownTask; cancel: ((id: string) => void) | null }): ReactElement {
  const { args, cancelling, done, id, message, ms, name, result, run, status, undo: can } = entry;
  const title = run === null || run.name === "" ? functionName(name) : run.name;
  const given = args === null ? "in the background" : brief(args);
  return (
    <div className="card" data-status={status}>
      <details>
        <summary>
          <Icon name="task" size={16} />
          <span className="card-name">{title}</span>
          <span className="card-brief">{given}</span>
          <span className="card-status" aria-live="off">{ms !== null && status === "done" ? duration(ms) : progress(entry)}</span>
        </summary>
        {args !== null && <Json label="Arguments" value={args} />}
        {status === "done" || status === "failed" ? <Json label="Result" value={result} /> : <p className="card-wait">{OVER[status] ?? "No result yet."}</p>}
        {run !== null && <p className="card-wait"><Link to={`/tools/runs/${encodeURIComponent(run.id)}`}>Its steps</Link></p>}
      </details>
      {status === "running" && (
        <div className="card-now" aria-live="off">
          {done !== null && <progress value={done} max={1} aria-label={`Progress of ${title}`} />}
          <span className="card-message">{cancelling ? "It is being stopped." : message}</span>
          {cancel !== null && <button type="button" className="button" aria-label={`Cancel ${title}`} aria-disabled={cancelling} onClick={() => cancel(id)}>Cancel</button>}
        </div>
      )}
      {status === "done" && <Undo call={id.replace(/^task-/, "")} name={name} undo={can} />}
    </div>
  );
}
