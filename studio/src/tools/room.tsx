/** Tools: functions to try, and what functions are doing: tasks, approvals, macros and runs. Loaded when it is opened first. */
import type { ReactElement } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { Link } from "wouter";
import { Approvals } from "./approvals";
import { Functions } from "./functions";
import { Macros } from "./macros";
import { Runs } from "./runs";
import { Tasks } from "./tasks";
import { TraceView } from "./trace";

const PARTS: readonly [path: string, name: string][] = [
  ["tasks", "Tasks"],
  ["approvals", "Approvals"],
  ["macros", "Macros"],
  ["runs", "Runs"],
];

interface ToolsRoomProps {
  call: UseVoiceAgent;
  /** Of the address: a function, or a part of the room; empty for the catalogue. */
  name: string;
  /** The run, where one is shown. */
  run: string;
}

export function ToolsRoom({ call, name, run }: ToolsRoomProps): ReactElement {
  const part = PARTS.find(([path]) => path === name)?.[0] ?? "";
  return (
    <main className="sessions tools-room">
      <div className="sessions-head">
        <h1>Tools</h1>
        <nav className="parts" aria-label="Parts of Tools">
          <Link to="/tools" aria-current={part === "" ? "page" : undefined}>Functions</Link>
          {PARTS.map(([path, words]) => (
            <Link key={path} to={`/tools/${path}`} aria-current={part === path ? "page" : undefined}>
              {words}
              {path === "approvals" && call.approvals.length > 0 && <Count number={call.approvals.length} />}
              {path === "tasks" && call.tasks.length > 0 && <Count number={call.tasks.length} />}
            </Link>
          ))}
        </nav>
      </div>
      {part === "" && <Functions name={name} />}
      {part === "tasks" && <Tasks call={call} />}
      {part === "approvals" && <Approvals call={call} />}
      {part === "macros" && <Macros />}
      {part === "runs" && (run === "" ? <Runs /> : <TraceView key={run} id={run} />)}
    </main>
  );
}

function Count({ number }: { number: number }): ReactElement {
  return <span className="count" aria-label={`${number} in this call`}>{number}</span>;
}
