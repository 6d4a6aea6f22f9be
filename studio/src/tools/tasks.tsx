/** Tasks: those of the call, those of other calls and outside calls that run, and those that ended. */
import { type ReactElement, useMemo, useState } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { Link } from "wouter";
import { complaint, useLoaded } from "../http";
import { Notice } from "../notice";
import { TaskCard as CallTask } from "../talk/cards";
import { shown } from "../talk/work";
import { ago, duration, functionName } from "../words";
import { Listed } from "./listed";
import { ResultView } from "./result";
import { about, placed, TASK_STATES } from "./work";
import { cancelTask, ENDED, fetchTask, runOf, type TaskCard, TASKS } from "./work-api";

interface Found {
  tasks: TaskCard[];
  /** The log of a session could not be read. */
  incomplete: boolean;
}

const RUNNERS = ["run_macro", "run_workflow"];

export function Tasks({ call }: { call: UseVoiceAgent }): ReactElement {
  const open = useLoaded<Found>(TASKS, true);
  const ended = useLoaded<Found>(ENDED, true);
  const [failure, setFailure] = useState("");
  const { agent, conversation } = call;
  const here = useMemo(() => shown(conversation, []).filter((entry) => entry.kind === "task" && entry.status === "running"), [conversation]);
  const { outside, others } = useMemo(() => placed(open.value?.tasks ?? [], call.sessionId), [open.value, call.sessionId]);
  const cancel = async (task: TaskCard): Promise<void> => {
    setFailure("");
    try {
      await cancelTask(task);
    } catch (cause) {
      setFailure(complaint(cause, "cancel tasks"));
    }
    open.reload();
    ended.reload();
  };
  const incomplete = open.value?.incomplete === true;
  const nothing = here.length === 0 && !incomplete && open.value?.tasks.length === 0 && ended.value?.tasks.length === 0;
  return (
    <div className="work">
      {failure !== "" && <Notice title={failure} />}
      <Listed loaded={open} what="the tasks" />
      {nothing && (
        <div className="empty">
          <h2>No task yet</h2>
          <p>What takes long goes on in the background as a task: a timer, a macro, a function that says so. Here they are with their progress and their end, and can be cancelled.</p>
          <Link to="/tools/set_timer" className="button">Set a timer</Link>
        </div>
      )}
      {here.length > 0 && (
        <section aria-label="In this call">
          <h2>In this call</h2>
          <div className="work-cards">{here.map((entry) => entry.kind === "task" && <CallTask key={entry.key} entry={entry} cancel={(id) => void agent.cancelTask(id)} />)}</div>
        </section>
      )}
      {incomplete && <p className="empty-line" role="status">Not every call could be asked for its tasks, so there may be more than these.</p>}
      {others.length > 0 && (
        <section aria-label="In other calls">
          <h2>In other calls</h2>
          <ul className="work-rows">{others.map((task) => <Open key={`${task.session} ${task.id}`} task={task} now={open.at} cancel={() => void cancel(task)} />)}</ul>
        </section>
      )}
      {outside.length > 0 && (
        <section aria-label="Outside calls">
          <h2>Outside calls</h2>
          <ul className="work-rows">{outside.map((task) => <Open key={task.id} task={task} now={open.at} cancel={() => void cancel(task)} />)}</ul>
        </section>
      )}
      {ended.value !== null && ended.value.tasks.length > 0 && (
        <section aria-label="Ended">
          <h2>Ended within a day</h2>
          <ul className="work-rows">{ended.value.tasks.map((task) => <Ended key={task.id} task={task} now={ended.at} />)}</ul>
        </section>
      )}
    </div>
  );
}

function Name({ task }: { task: TaskCard }): ReactElement {
  const name = functionName(task.function);
  return RUNNERS.includes(task.function) ? <Link to={runOf(task.id)} className="work-name">{name}</Link> : <b className="work-name">{name}</b>;
}

function Open({ task, now, cancel }: { task: TaskCard; now: number; cancel: () => void }): ReactElement {
  const name = functionName(task.function);
  const words = about(task, now);
  return (
    <li className="work-row" data-state={task.state}>
      <Name task={task} />
      <span className="work-state">{task.done === undefined ? TASK_STATES[task.state] : `${Math.round(task.done * 100)} %`}</span>
      {words !== "" && <span className="work-about">{words}</span>}
      {task.done !== undefined && <progress value={task.done} max={1} aria-label={`Progress of ${name}`} />}
      {task.session !== undefined && <Link to={`/sessions/${encodeURIComponent(task.session)}`}>its call<span className="unseen"> of {name}</span></Link>}
      {task.state === "needs_approval" && task.session === undefined ? <Link to="/tools/approvals" className="button">Answer</Link> : <button type="button" className="button" aria-label={`Cancel ${name}`} onClick={cancel}>Cancel</button>}
    </li>
  );
}

/** Its result is read when it is opened. */
function Ended({ task, now }: { task: TaskCard; now: number }): ReactElement {
  const [result, setResult] = useState<Record<string, unknown> | string | null>(null);
  const { ended_at_ms: ended = task.started_at_ms, started_at_ms: started } = task;
  const load = (opened: boolean): void => {
    if (!opened || result !== null) return;
    fetchTask(task.id)
      .then((found) => setResult(found.result ?? {}))
      .catch((cause: unknown) => setResult(complaint(cause, "read tasks")));
  };
  return (
    <li className="work-row" data-state={task.state}>
      <Name task={task} />
      <span className="work-state">{TASK_STATES[task.state]}</span>
      <span className="work-about">{[task.label ?? "", `${ago(ended, now)}, after ${duration(Math.max(0, ended - started))}`].filter((words) => words !== "").join(" · ")}</span>
      <details onToggle={(event) => load(event.currentTarget.open)}>
        <summary>Result<span className="unseen"> of {functionName(task.function)}</span></summary>
        {typeof result === "string" && <p>{result}</p>}
        {result !== null && typeof result !== "string" && <ResultView value={result} ms={Math.max(0, ended - started)} />}
      </details>
    </li>
  );
}
