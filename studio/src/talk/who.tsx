/** Who is speaking and on which model, what that has cost, and handing over to another agent of the team. */
import { type ReactElement, useRef, useState } from "react";
import type { Snapshot } from "voxbridge/react";
import { handOver } from "../agents/api";
import { complaint } from "../http";
import { agentName, cost, providerName, tokens } from "../words";

export function Who({ snapshot }: { snapshot: Snapshot }): ReactElement | null {
  const { sessionId, mode, speaker, usage, spent, connection } = snapshot;
  if (sessionId === null) return null;
  const name = speaker.agent === "" ? (mode === "echo" ? "Echo" : "Voxbridge") : agentName(speaker.agent);
  const more = mode === "echo" ? [] : [speaker.voice && `voice ${speaker.voice}`, speaker.model === "local" ? providerName(speaker.model) : speaker.model].filter(Boolean);
  const total = spent.input_tokens + spent.output_tokens;
  return (
    <div className="who" data-named={speaker.agent !== ""}>
      <p>
        <b>{name}</b>
        <span className="who-more">{more.map((part) => ` · ${part}`)}</span>
      </p>
      {total > 0 && (
        <p className="spent" title={`${spent.input_tokens} in, ${spent.output_tokens} out`}>
          {tokens(total)} tokens{cost(spent.microdollars ?? 0)} · last turn {tokens(usage.input_tokens)} in, {tokens(usage.output_tokens)} out
        </p>
      )}
      {connection === "connected" && speaker.agents.length > 1 && <HandOver sessionId={sessionId} current={speaker.agent} others={speaker.agents.filter((one) => one !== speaker.agent)} />}
    </div>
  );
}

function HandOver({ sessionId, current, others }: { sessionId: string; current: string; others: readonly string[] }): ReactElement {
  const menu = useRef<HTMLDivElement>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const go = async (to: string): Promise<void> => {
    setBusy(true);
    setFailure("");
    try {
      await handOver(sessionId, to);
      menu.current?.hidePopover();
    } catch (cause) {
      setFailure(complaint(cause, "hand calls over"));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" className="button hand-over" popoverTarget="hand-over">Hand over…</button>
      <div popover="auto" id="hand-over" ref={menu} className="popover hand-over-menu" role="dialog" aria-label="Hand the call over" key={current}>
        <p className="label">{agentName(current)} hands the call over to</p>
        <ul>
          {others.map((name) => (
            <li key={name}><button type="button" className="button" disabled={busy} onClick={() => void go(name)}>{agentName(name)}</button></li>
          ))}
        </ul>
        {failure !== "" && <p role="alert" className="outcome" data-failed="true">{failure}</p>}
      </div>
    </>
  );
}
