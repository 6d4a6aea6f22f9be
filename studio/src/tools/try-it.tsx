/** One function: what it does, a form for its arguments, and what became of a run. Owns the draft and the last result. */
import { type ReactElement, type SyntheticEvent, useEffect, useRef, useState } from "react";
import { isRefused, ReadError } from "../http";
import { Notice } from "../notice";
import { functionName } from "../words";
import { type FunctionCard, run } from "./api";
import { Badges } from "./badges";
import { fieldId, FieldView } from "./fields";
import { ResultView } from "./result";
import { collect, type Draft, initial, isObject, type Problem } from "./schema";

type Outcome = { kind: "result"; value: unknown; ms: number } | { kind: "error"; title: string; advice: string };

const KINDS: Record<FunctionCard["kind"], string> = {
  server: "Runs on this installation.",
  async: "Continues in the background; you are told when it ends.",
  browser: "Answered by the page: here, by this one.",
};

export function TryIt({ card }: { card: FunctionCard }): ReactElement {
  const { parameters: root } = card;
  const [draft, setDraft] = useState<Draft>(() => initial(root, root));
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const asksNothing = Object.keys(root.properties ?? {}).length === 0 && (root.additionalProperties ?? false) === false;
  const wrong = useRef<string | null>(null);
  useEffect(() => {
    if (wrong.current !== null) document.getElementById(fieldId(wrong.current))?.focus();
    wrong.current = null;
  }, [problems]);
  const say = (found: readonly Problem[]): void => {
    wrong.current = found[0]?.path ?? null;
    setProblems(found);
  };
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    if (busy) return;
    const found: Problem[] = [];
    const args = asksNothing ? {} : collect(draft, root, root, true, found);
    if (found.length === 0 && !isObject(args)) found.push({ path: "", message: "Give a JSON object." });
    say(found);
    if (found.length > 0 || !isObject(args)) return;
    setBusy(true);
    setOutcome(null);
    const begun = performance.now();
    try {
      const value = await run(card, args);
      setOutcome({ kind: "result", value, ms: performance.now() - begun });
    } catch (cause) {
      if (cause instanceof ReadError && cause.field !== "") say([{ path: cause.field.replace(/^args\./, ""), message: cause.message }]);
      setOutcome(failure(cause));
    } finally {
      setBusy(false);
    }
  };
  return (
    <article className="panel tool" aria-labelledby="tool-title">
      <h2 id="tool-title">{functionName(card.name)}</h2>
      <p className="tool-name"><code>{card.name}</code> <Badges card={card} /></p>
      <p>{card.description}</p>
      <p className="quiet-text">{KINDS[card.kind]} It may take {card.timeout_s.toLocaleString("en")} s.{card.listed ? "" : " Agents reach it through run_tool."}</p>
      <form className="tool-form" noValidate onSubmit={(event) => void submit(event)}>
        {asksNothing && <p className="empty-line">It needs no arguments.</p>}
        {!asksNothing && <FieldView name="arguments" path="" schema={root} root={root} required value={draft} problems={problems} onChange={setDraft} />}
        <div className="tool-run">
          <button type="submit" className="button" data-effect={card.effect} disabled={busy}>{busy ? "Running…" : "Run"}</button>
          {problems.length > 0 && <p className="field-about" data-wrong="true" role="alert">{problems.length === 1 ? "One answer does not fit." : `${problems.length} answers do not fit.`}</p>}
        </div>
      </form>
      <div aria-live="polite">
        {outcome?.kind === "result" && <ResultView value={outcome.value} ms={outcome.ms} />}
        {outcome?.kind === "error" && <Notice title={outcome.title}><p>{outcome.advice}</p></Notice>}
      </div>
    </article>
  );
}

function failure(cause: unknown): Outcome {
  const title = cause instanceof Error ? cause.message.charAt(0).toUpperCase() + cause.message.slice(1) : "It did not run.";
  return { kind: "error", title, advice: advice(cause) };
}

/** What the person can do about it. */
function advice(cause: unknown): string {
  if (cause instanceof DOMException && cause.name === "TimeoutError") return "The gateway did not answer in the function's time. What it did is in the log; look there before you run it again.";
  if (isRefused(cause)) return "The administrators' token can run it: give it in Keys.";
  if (!(cause instanceof ReadError)) return "Change the arguments, or try again.";
  if (cause.status === 0) return "Look at the terminal of voxbridge up, and try again.";
  if (cause.status === 404) return "The catalogue may have changed: load this page again.";
  if (cause.status === 422 || cause.status === 400) return "Change the arguments, and run it again.";
  if (cause.status === 429 || cause.status >= 500) return "Try again in a moment; Sessions and the services' logs say more.";
  return "Change the arguments, or try again.";
}
