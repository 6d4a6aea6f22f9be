/** Runs of macros and workflows, in calls and outside, newest first. */
import type { ReactElement } from "react";
import { Link } from "wouter";
import { useLoaded } from "../http";
import { ago, duration } from "../words";
import { Listed } from "./listed";
import { isOver, RUN_STATES, why } from "./work";
import { type Run, RUNS, runOf } from "./work-api";

interface Found {
  runs: Run[];
  count: number;
}

export function Runs(): ReactElement {
  const found = useLoaded<Found>(RUNS, true);
  const { value } = found;
  const groups: [string, Run[]][] = [
    ["Under way", value?.runs.filter(({ state }) => !isOver(state)) ?? []],
    ["Ended within a day", value?.runs.filter(({ state }) => isOver(state)) ?? []],
  ];
  return (
    <div className="work">
      <Listed loaded={found} what="the runs" />
      {value?.runs.length === 0 && (
        <div className="empty">
          <h2>No run yet</h2>
          <p>Each run of a macro or a workflow is here with its steps: what each was given, what came of it, and where it stopped.</p>
          <Link to="/tools/macros" className="button">See the macros</Link>
        </div>
      )}
      {groups.map(([title, runs]) =>
        runs.length === 0 ? null : (
          <section key={title} aria-label={title}>
            <h2>{title}</h2>
            <ul className="work-rows">{runs.map((run) => <Row key={run.id} run={run} now={found.at} />)}</ul>
          </section>
        ),
      )}
      {value !== null && value.count > value.runs.length && <p className="quiet-text">{value.count - value.runs.length} older ones are not listed here.</p>}
    </div>
  );
}

function Row({ run, now }: { run: Run; now: number }): ReactElement {
  const { ended_at_ms: ended, id, kind, name, started_at_ms: started, state } = run;
  const when = started === undefined ? "" : `${ago(started, now)}${ended === undefined ? "" : `, for ${duration(Math.max(0, ended - started))}`}`;
  return (
    <li className="work-row" data-state={state}>
      <Link to={runOf(id)} className="work-name">{name}</Link>
      <span className="work-state">{RUN_STATES[state]}</span>
      <span className="work-about">{[kind, when, why(run)].filter((words) => words !== "").join(" · ")}</span>
    </li>
  );
}
