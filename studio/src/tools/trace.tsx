/** One run: each attempt of its steps with times, arguments and result; why it failed; what it asks; and a way to end it. */
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Link } from "wouter";
import { complaint, useLoaded } from "../http";
import { Icon } from "../icons";
import { Notice } from "../notice";
import { ago, duration } from "../words";
import { Listed } from "./listed";
import { ResultView } from "./result";
import { does, isOver, pretty, RUN_STATES, STEP_STATES, times, why } from "./work";
import { answerRun, type Attempt, cancelRun, RUNS, type Trace } from "./work-api";

/** Characters of an answer (docs/protocol.md). */
const ANSWER_LIMIT = 2_000;

export function TraceView({ id }: { id: string }): ReactElement {
  const [over, setOver] = useState(false);
  const found = useLoaded<Trace>(`${RUNS}/${encodeURIComponent(id)}`, !over);
  const [failure, setFailure] = useState("");
  const { value, reload } = found;
  if (value !== null && isOver(value.state) !== over) setOver(isOver(value.state));
  const say = async (what: () => Promise<unknown>, words: string): Promise<void> => {
    setFailure("");
    try {
      await what();
    } catch (cause) {
      setFailure(complaint(cause, words));
    }
    reload();
  };
  const missing = found.error?.status === 404;
  return (
    <div className="work">
      <Link to="/tools/runs" className="back"><Icon name="back" size={18} />Runs</Link>
      {missing ? <Notice title="There is no such run."><p>It may have ended more than a day ago. Its events are in its session.</p></Notice> : <Listed loaded={found} what="the run" />}
      {failure !== "" && <Notice title={failure} />}
      {value !== null && !missing && (
        <article className="panel trace" aria-labelledby="trace-title">
          <Head run={value} now={found.at} cancel={() => void say(() => cancelRun(id), "cancel runs")} />
          {(value.waits_for === "ask" || value.waits_for === "error" || value.waits_for === "step") && (
            <Question key={value.step} run={value} answer={(text) => void say(() => answerRun(id, value.step ?? "", text), "answer runs")} />
          )}
          {value.waits_for === "approval" && <p className="trace-why"><Link to="/tools/approvals" className="button">Answer it</Link></p>}
          <Steps run={value} />
          {value.result !== undefined && <ResultView value={value.result} ms={Math.max(0, (value.ended_at_ms ?? 0) - (value.started_at_ms ?? 0))} />}
        </article>
      )}
    </div>
  );
}

function Head({ run, now, cancel }: { run: Trace; now: number; cancel: () => void }): ReactElement {
  const { ended_at_ms: ended, kind, name, session, started_at_ms: started, state } = run;
  const inputs = Object.entries(run.inputs ?? {});
  const words = why(run);
  return (
    <>
      <div className="trace-head">
        <h2 id="trace-title">{name}</h2>
        <span className="badge" data-live={!isOver(state)} data-state={state}>{RUN_STATES[state]}</span>
        {!isOver(state) && <button type="button" className="button" aria-label={`Cancel ${name}`} onClick={cancel}>Cancel</button>}
      </div>
      <p className="quiet-text">
        {kind === "macro" ? "Macro" : "Workflow"}
        {started !== undefined && ` · ${ago(started, now)}`}
        {started !== undefined && ended !== undefined && `, for ${duration(Math.max(0, ended - started))}`}
        {inputs.length > 0 && ` · with ${inputs.map(([part, value]) => `${part} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ")}`}
        {session !== undefined && <> · <Link to={`/sessions/${session}`}>in session {session.slice(0, 8)}</Link></>}
      </p>
      {words !== "" && <p className="trace-why" data-state={state}>{words}</p>}
    </>
  );
}

function Question({ run, answer }: { run: Trace; answer: (text: string) => void }): ReactElement {
  const [text, setText] = useState("");
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (text.trim() !== "") answer(text.trim());
  };
  if (run.waits_for === "error") {
    return (
      <div className="work-buttons" role="group" aria-label="What to do after the failed step">
        <button type="button" className="button" onClick={() => answer("again")}>Try again</button>
        <button type="button" className="button" onClick={() => answer("go_on")}>Go on without it</button>
        <button type="button" className="button" onClick={() => answer("stop")}>Stop</button>
      </div>
    );
  }
  if (run.waits_for === "step") {
    return (
      <div className="work-buttons" role="group" aria-label="Whether the step begins">
        <button type="button" className="button" onClick={() => answer("yes")}>Yes</button>
        <button type="button" className="button" onClick={() => answer("no")}>Leave it out</button>
        <button type="button" className="button" onClick={() => answer("stop")}>Stop</button>
      </div>
    );
  }
  return (
    <form className="key-form" onSubmit={submit}>
      <input type="text" value={text} maxLength={ANSWER_LIMIT} onChange={(event) => setText(event.target.value)} aria-label="Your answer" placeholder="Your answer" autoComplete="off" />
      <button type="submit" className="button" disabled={text.trim() === ""}>Answer</button>
    </form>
  );
}

function Steps({ run: { attempts = [], started_at_ms: started = 0 } }: { run: Trace }): ReactElement {
  if (attempts.length === 0) return <p className="empty-line">No step has begun yet.</p>;
  return (
    <ol className="trace-steps" aria-label="Steps">
      {attempts.map((one) => <Step key={`${one.step}.${one.attempt}.${one.state === "skipped"}`} one={one} origin={started} />)}
    </ol>
  );
}

function Step({ one, origin }: { one: Attempt; origin: number }): ReactElement {
  const { args = "", attempt, error, result = "", state, step } = one;
  return (
    <li className="trace-step" data-state={state}>
      <div className="trace-line">
        <span className="trace-mark" aria-hidden="true" />
        <b>{step}</b>
        {does(one) !== "" && <span>{does(one)}{attempt > 1 && `, try ${attempt}`}</span>}
        <span className="work-state">{STEP_STATES[state]}</span>
        <span className="trace-time">{state === "skipped" ? "" : times(one, origin)}</span>
      </div>
      {error !== undefined && <p className="trace-error">{error.message}</p>}
      {(args !== "" || result !== "") && (
        <details>
          <summary>{result === "" ? "Arguments" : "Arguments and result"}<span className="unseen"> of {step}, try {attempt}</span></summary>
          {args !== "" && <Json label="Arguments" of={step} text={args} />}
          {result !== "" && <Json label="Result" of={step} text={result} />}
        </details>
      )}
    </li>
  );
}

function Json({ label, of, text }: { label: string; of: string; text: string }): ReactElement {
  return (
    <>
      <span className="label">{label}</span>
      <pre tabIndex={0} role="region" aria-label={`${label} of ${of}`}>{pretty(text)}</pre>
    </>
  );
}
