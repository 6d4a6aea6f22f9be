/** Macros of the account: what starts them, a run with its inputs, and their end. */
import { type ReactElement, type SyntheticEvent, useId, useState } from "react";
import { Link } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { complaint, useLoaded } from "../http";
import { functionName } from "../words";
import { Listed } from "./listed";
import { input } from "./work";
import { deleteMacro, type Macro, MACROS, runMacro, runOf } from "./work-api";

interface Found {
  macros: Macro[];
  more?: number;
}

export function Macros(): ReactElement {
  const [skip, setSkip] = useState(0);
  const found = useLoaded<Found>(skip === 0 ? MACROS : `${MACROS}?skip=${skip}`);
  const { value } = found;
  return (
    <div className="work">
      <Listed loaded={found} what="the macros" />
      {value?.macros.length === 0 && skip === 0 && (
        <div className="empty">
          <h2>No macro yet</h2>
          <p>A macro is a list of steps under a name. Do something with the agent, then say “save what I just did as a macro”; or make one from its steps.</p>
          <Link to="/tools/create_macro" className="button">Make a macro</Link>
        </div>
      )}
      {value !== null && value.macros.length > 0 && <ul className="work-rows">{value.macros.map((macro) => <Row key={macro.macro_id} macro={macro} changed={found.reload} />)}</ul>}
      {skip > 0 && <button type="button" className="button" onClick={() => setSkip(0)}>First macros</button>}
      {value?.more !== undefined && <button type="button" className="button" onClick={() => setSkip(skip + value.macros.length)}>Next macros ({value.more} more)</button>}
    </div>
  );
}

type Doing = "" | "inputs" | "deleting" | "busy" | "gone";

function Row({ macro: { macro_id: id, name, triggers, steps, inputs = [] }, changed }: { macro: Macro; changed: () => void }): ReactElement {
  const [doing, setDoing] = useState<Doing>("");
  const [outcome, setOutcome] = useState({ text: "", failed: false });
  const work = async (what: () => Promise<void>, words: string): Promise<void> => {
    setDoing("busy");
    setOutcome({ text: "", failed: false });
    try {
      await what();
    } catch (cause) {
      setDoing("");
      setOutcome({ text: complaint(cause, words), failed: true });
    }
  };
  const run = (given: Record<string, unknown>): void => void work(async () => {
    const { task_id: task = "", status } = await runMacro(id, given);
    if (status === "needs_approval") navigate("/tools/approvals");
    else if (task !== "") navigate(runOf(task));
    else setDoing("");
  }, "run macros");
  const remove = (): void => void work(async () => {
    await deleteMacro(id);
    setDoing("gone");
    setOutcome({ text: "It is being deleted.", failed: false });
    changed();
  }, "delete macros");
  return (
    <li className="work-row" data-state={doing === "gone" ? "cancelled" : undefined}>
      <b className="work-name">{name}</b>
      <span className="work-state">{steps === 1 ? "1 step" : `${steps} steps`}</span>
      <span className="work-about">{triggers.length === 0 ? "No words start it." : `Say ${triggers.map((one) => `“${one}”`).join(" or ")}.`}</span>
      {doing === "inputs" && <Inputs names={inputs} run={run} close={() => setDoing("")} />}
      {doing === "deleting" && (
        <div className="work-sure" role="group" aria-label={`Delete ${name}`}>
          <span>It is gone for good then.</span>
          <button type="button" className="button" onClick={() => setDoing("")}>Keep it</button>
          <button type="button" className="button ask-yes" data-effect="destructive" onClick={remove}>Delete it</button>
        </div>
      )}
      {(doing === "" || doing === "busy") && (
        <div className="work-buttons">
          <button type="button" className="button" disabled={doing === "busy"} aria-label={`Run ${name}`} onClick={() => (inputs.length > 0 ? setDoing("inputs") : run({}))}>Run</button>
          <button type="button" className="button" disabled={doing === "busy"} aria-label={`Delete ${name}`} onClick={() => setDoing("deleting")}>Delete</button>
        </div>
      )}
      <p role="status" className="outcome" data-failed={outcome.failed}>{outcome.text}</p>
    </li>
  );
}

function Inputs({ names, run, close }: { names: readonly string[]; run: (given: Record<string, unknown>) => void; close: () => void }): ReactElement {
  const [given, setGiven] = useState<Record<string, string>>({});
  const id = useId();
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    run(Object.fromEntries(Object.entries(given).filter(([, text]) => text !== "").map(([name, text]) => [name, input(text)])));
  };
  return (
    <form className="work-inputs" onSubmit={submit}>
      {names.map((name, index) => (
        <div key={name} className="field">
          <label htmlFor={`${id}-${index}`}>{functionName(name)}</label>
          <input id={`${id}-${index}`} type="text" autoComplete="off" maxLength={2000} value={given[name] ?? ""} onChange={(event) => setGiven({ ...given, [name]: event.target.value })} />
        </div>
      ))}
      <div className="work-buttons">
        <button type="button" className="button" onClick={close}>Not now</button>
        <button type="submit" className="button ask-yes">Run it</button>
      </div>
    </form>
  );
}
