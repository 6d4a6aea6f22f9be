/**
 * What waits for the person: approvals, with what would be done, and questions of runs. Owns no answer: the agent does.
 * It comes without taking the focus: a screen reader is told, and a key leads there.
 */
import { type ReactElement, type RefObject, type SyntheticEvent, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import type { Approval, Decision, MacroRun, RunQuestion, UseVoiceAgent } from "voxbridge/react";
import { Icon } from "../icons";
import { functionName } from "../words";
import { ARGUMENTS_LIMIT, became, EFFECT_WORDS, facts, left } from "./work";

const TICK_MS = 1000;

/** The parts of a request that a card needs, from a call or from the account. */
export type Request = Pick<Approval, "id" | "name" | "args" | "effect" | "expiresAt" | "scopes" | "answer" | "outcome" | "by">;

interface AskCardProps {
  request: Request;
  /** Null where it cannot be answered from here: `why` says so. */
  answer: ((yes: boolean, scope: Decision["scope"]) => void) | null;
  why?: string;
}

/** Not in a live region: a number that changes each second would be read out each second. */
function Left({ expiresAt }: { expiresAt: number }): ReactElement {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return <span className="ask-left" role="timer" aria-live="off">{left(expiresAt, now)}</span>;
}

/** The focus does not fall to the top of the page when a card goes with the button that was pressed. */
function useLeaving(): RefObject<HTMLElement | null> {
  const card = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = card.current;
    return () => {
      if (element?.contains(document.activeElement) === true) document.querySelector<HTMLElement>("[data-after-asking]")?.focus();
    };
  }, []);
  return card;
}

export function AskCard({ request, answer, why = "" }: AskCardProps): ReactElement {
  const { args, effect, expiresAt, name, scopes } = request;
  const title = useId();
  const card = useLeaving();
  const given = facts(args);
  const more = Object.keys(args).length - given.length;
  const sent = request.answer !== null;
  const say = (yes: boolean, scope: Decision["scope"] = "once") => (): void => {
    if (!sent) answer?.(yes, scope);
  };
  return (
    <article className="ask" aria-labelledby={title} data-effect={effect} tabIndex={-1} ref={card}>
      <p className="ask-head">
        <Icon name="ask" size={18} />
        <b id={title}>{functionName(name)}?</b>
        <span className="badges"><span className="badge" data-effect={effect}>{EFFECT_WORDS[effect]}</span></span>
        <Left expiresAt={expiresAt} />
      </p>
      {given.length > 0 && (
        <div className="ask-args" tabIndex={0} role="group" aria-label="With these values">
          <dl>{given.map(([part, value]) => <div key={part}><dt>{part}</dt><dd>{value}</dd></div>)}</dl>
        </div>
      )}
      {more > 0 && <p className="quiet-text">{more} more than the {ARGUMENTS_LIMIT} shown here.</p>}
      {answer === null && <p className="quiet-text">{why}</p>}
      {sent && <p className="quiet-text" role="status">{became(request)}</p>}
      {answer !== null && (
        <div className="ask-answers">
          <button type="button" className="button" aria-disabled={sent} onClick={say(false)}>No</button>
          <button type="button" className="button ask-yes" data-effect={effect} aria-disabled={sent} onClick={say(true)}>Yes</button>
          {scopes.length > 0 && (
            <details className="ask-always">
              <summary>Always…</summary>
              <div>
                {scopes.includes("arguments") && given.length > 0 && <button type="button" className="button" aria-disabled={sent} onClick={say(true, "arguments")}>Yes, and always with these values</button>}
                {scopes.includes("function") && <button type="button" className="button" aria-disabled={sent} onClick={say(true, "function")}>Yes, and always for {functionName(name)}</button>}
              </div>
            </details>
          )}
        </div>
      )}
    </article>
  );
}

/** Characters of an answer (docs/protocol.md). */
const ANSWER_LIMIT = 2_000;

/** What to do after a step that failed, as the server takes it. */
const CHOICES: Record<Exclude<RunQuestion["reason"], "ask">, [answer: string, words: string][]> = {
  error: [["stop", "Stop"], ["go_on", "Go on without it"], ["again", "Try again"]],
  step: [["stop", "Stop"], ["no", "Leave it out"], ["yes", "Yes"]],
};

interface QuestionCardProps {
  name: string;
  question: RunQuestion;
  /** Null where it cannot be answered from here. */
  answer: ((text: string) => void) | null;
}

/** What a run asks. */
export function QuestionCard({ name, question: { answer: given, reason, text }, answer }: QuestionCardProps): ReactElement {
  const title = useId();
  const card = useLeaving();
  const [written, setWritten] = useState("");
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (written.trim() !== "") answer?.(written.trim());
  };
  return (
    <article className="ask" aria-labelledby={title} tabIndex={-1} ref={card}>
      <p className="ask-head"><Icon name="ask" size={18} /><b id={title}>{text}</b></p>
      <p className="quiet-text">{functionName(name)} goes on when you answer.</p>
      {given !== null && <p className="quiet-text" role="status">Your answer is on its way.</p>}
      {answer !== null && given === null && reason !== "ask" && (
        <div className="ask-answers">{CHOICES[reason].map(([value, words]) => <button key={value} type="button" className="button" onClick={() => answer(value)}>{words}</button>)}</div>
      )}
      {answer !== null && given === null && reason === "ask" && (
        <form className="ask-form" onSubmit={submit}>
          <input type="text" value={written} maxLength={ANSWER_LIMIT} onChange={(event) => setWritten(event.target.value)} aria-label="Your answer" placeholder="Your answer" autoComplete="off" />
          <button type="submit" className="button" disabled={written.trim() === ""}>Answer</button>
        </form>
      )}
    </article>
  );
}

interface Asked {
  run: MacroRun;
  question: RunQuestion;
}

/** What a call waits for the person with, below its captions. */
export function Asking({ call: { agent, approvals, connection, tasks } }: { call: UseVoiceAgent }): ReactElement {
  const live = connection === "connected" || connection === "reconnecting";
  const asked = tasks.flatMap(({ run }): Asked[] => (run === null || run.question === null ? [] : [{ run, question: run.question }]));
  return (
    <div className="asking" role="region" aria-label="Waiting for you" aria-live="polite">
      {approvals.map((request) => (
        <AskCard key={request.id} request={request} answer={live ? (yes, scope) => void agent.answerApproval(request.id, yes, scope) : null} why="The call goes on in another window: answer there, or take the call back." />
      ))}
      {asked.map(({ run, question }) => <QuestionCard key={`${run.id} ${question.step}`} name={run.name} question={question} answer={live ? (text) => void agent.answerRun(run.id, text) : null} />)}
    </div>
  );
}

/** Lead the focus to what was asked last. */
export function toAsking(): void {
  [...document.querySelectorAll<HTMLElement>(".asking .ask")].at(-1)?.focus();
}
