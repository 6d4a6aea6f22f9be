/** Approvals: what waits for an answer, in the call and outside calls, and what was approved for good. */
import { type ReactElement, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import type { Decision, UseVoiceAgent } from "voxbridge/react";
import { complaint, ReadError, useLoaded } from "../http";
import { Notice } from "../notice";
import { AskCard, type Request } from "../talk/asking";
import { functionName } from "../words";
import { Listed } from "./listed";
import { byFunction } from "./work";
import { answerApproval, APPROVALS, fetchStanding, fetchTask, type OpenApproval, revoke, type Standing } from "./work-api";

interface Found {
  approvals: OpenApproval[];
}

/** Outcomes that are told; older ones make way. */
const TOLD_LIMIT = 5;

export function Approvals({ call }: { call: UseVoiceAgent }): ReactElement {
  const open = useLoaded<Found>(APPROVALS, true);
  const [sent, setSent] = useState<Record<string, Decision>>({});
  const [told, tell] = useTold();
  const late = useRef(new Set<string>());
  const { agent, connection } = call;
  const live = connection === "connected" || connection === "reconnecting";
  const waiting = open.value?.approvals ?? [];
  useGone(open.value === null ? null : waiting, sent, late, tell);
  const { reload } = open;
  const answer = async ({ id, function: name }: OpenApproval, decision: Decision): Promise<void> => {
    setSent((before) => ({ ...before, [id]: decision }));
    try {
      await answerApproval(id, decision);
    } catch (cause) {
      setSent((before) => Object.fromEntries(Object.entries(before).filter(([other]) => other !== id)));
      if (!(cause instanceof ReadError) || cause.status !== 404) tell(complaint(cause, "answer for this account"));
      else {
        late.current.add(id);
        tell(`${functionName(name)}: your answer came too late. ${await outcome(id)}`);
      }
    }
    reload();
  };
  const nothing = open.value !== null && waiting.length === 0 && call.approvals.length === 0;
  return (
    <div className="work">
      <Listed loaded={open} what="what waits for an answer" />
      <div role="status" className="work-told" data-after-asking tabIndex={-1}>{told.map((words) => <p key={words}>{words}</p>)}</div>
      {nothing && (
        <div className="empty">
          <h2>Nothing waits for you</h2>
          <p>What destroys something, and what is set up to ask first, waits here for a yes or a no. In a call you can say it, too.</p>
        </div>
      )}
      {call.approvals.length > 0 && (
        <section aria-label="In this call">
          <h2>In this call</h2>
          <div className="work-cards">
            {call.approvals.map((request) => (
              <AskCard key={request.id} request={request} answer={live ? (yes, scope) => void agent.answerApproval(request.id, yes, scope) : null} why="The call goes on in another window: answer there." />
            ))}
          </div>
        </section>
      )}
      {waiting.length > 0 && (
        <section aria-label="Outside calls">
          <h2>Outside calls</h2>
          <div className="work-cards">
            {waiting.map((one) => (
              <AskCard key={one.id} request={requestOf(one, sent[one.id])} answer={(yes, scope) => void answer(one, { answer: yes ? "approved" : "denied", scope })} />
            ))}
          </div>
        </section>
      )}
      {open.value !== null && <StandingList />}
    </div>
  );
}

function requestOf({ id, function: name, arguments: args, effect, question, expires_at_ms: expiresAt, scopes }: OpenApproval, answer: Decision | undefined): Request {
  return { id, name, args: args ?? { asked: question }, effect, expiresAt, scopes, answer: answer ?? null, outcome: null, by: "" };
}

function useTold(): [told: readonly string[], tell: (words: string) => void] {
  const [told, setTold] = useState<readonly string[]>([]);
  const tell = useCallback((words: string) => setTold((before) => [...before.filter((other) => other !== words), words].slice(-TOLD_LIMIT)), []);
  return [told, tell];
}

/** Tell what became of requests that are not listed any more. */
function useGone(waiting: readonly OpenApproval[] | null, sent: Record<string, Decision>, late: RefObject<Set<string>>, tell: (words: string) => void): void {
  const before = useRef<readonly OpenApproval[]>([]);
  useEffect(() => {
    if (waiting === null) return;
    const gone = before.current.filter(({ id }) => !waiting.some((one) => one.id === id));
    before.current = waiting;
    for (const { id, function: name } of gone) {
      const mine = sent[id];
      if (mine !== undefined) tell(`${functionName(name)}: you said ${mine.answer === "approved" ? "yes" : "no"}.`);
      else if (!late.current.has(id)) void outcome(id).then((words) => tell(`${functionName(name)}: ${words}`));
    }
  }, [waiting, sent, late, tell]);
}

/** What became of a request that this page did not answer. */
async function outcome(id: string): Promise<string> {
  const task = await fetchTask(id.replace(/^approval-/, "task-")).catch(() => null);
  if (task === null || task.state === "needs_approval") return "It is answered already, or lapsed.";
  return task.state === "declined" ? "It was answered with no, or lapsed." : "It was answered with yes.";
}

/** Read once, and after a change: each reading is a call of a function. */
function StandingList(): ReactElement | null {
  const [standing, setStanding] = useState<Standing[] | null>(null);
  const [failure, setFailure] = useState("");
  const [round, setRound] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    fetchStanding(leaving.signal)
      .then(setStanding)
      .catch((cause: unknown) => {
        if (!leaving.signal.aborted) setFailure(complaint(cause, "see what is approved for good"));
      });
    return () => leaving.abort();
  }, [round]);
  const end = async (name: string): Promise<void> => {
    setFailure("");
    try {
      await revoke(name.replaceAll("_", " "));
    } catch (cause) {
      setFailure(complaint(cause, "take approvals back"));
    }
    setRound((before) => before + 1);
  };
  return (
    <section aria-label="Approved for good">
      <h2>Approved for good</h2>
      {failure !== "" && <Notice title={failure} />}
      {standing?.length === 0 && <p className="empty-line">Nothing: you are asked each time. “Always…” beside a question changes that.</p>}
      {standing !== null && standing.length > 0 && (
        <ul className="work-rows">
          {byFunction(standing).map(([name, values]) => (
            <li key={name} className="work-row">
              <b className="work-name">{functionName(name)}</b>
              <span className="work-about">{values.map((value) => (value === null ? "with any values" : `with ${JSON.stringify(value)}`)).join(", ")}</span>
              <button type="button" className="button" aria-label={`Ask again before ${functionName(name)}`} onClick={() => void end(name)}>Ask again</button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
