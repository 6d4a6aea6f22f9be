/** Keys with which pages and servers open sessions, and what pages with a live key may run: making, revoking, approving. */
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { ask, complaint, type Loaded, useLoaded } from "../http";

const KEYS = "/api/keys";
const APPROVALS = "/api/approvals";

interface PageKey {
  id: string;
  account: string;
  kind: "public" | "secret";
  environment: "live" | "test";
  name: string;
  origins: string[];
  expired: boolean;
}

interface Configured {
  digest: string;
  configuration: { instructions: string; greeting: string; tools: { name: string; description: string; source: string }[] };
  changes: Record<string, string>;
  origin: string;
}

interface Approvals {
  approved: Configured[];
  pending: Configured[];
}

type Act = (work: () => Promise<unknown>, doing: string) => void;

/** Runs one change at a time; what went wrong with the last one is said. */
function useActs(onChanged: () => void): { busy: boolean; wrong: string; act: Act } {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const act: Act = (work, doing) => {
    setBusy(true);
    setWrong("");
    work()
      .then(onChanged)
      .catch((cause: unknown) => setWrong(complaint(cause, doing)))
      .finally(() => setBusy(false));
  };
  return { busy, wrong, act };
}

function MakeKey({ busy, act }: { busy: boolean; act: Act }): ReactElement {
  const [account, setAccount] = useState("local");
  const [origin, setOrigin] = useState("");
  const [live, setLive] = useState(false);
  const [text, setText] = useState("");
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const body = { account, environment: live ? "live" : "test", origins: origin.trim() === "" ? [] : [origin.trim()] };
    act(async () => setText((await ask<{ text: string }>(KEYS, { method: "POST", body })).text), "make keys");
  };
  return (
    <form className="key-form" onSubmit={submit}>
      <input value={account} onChange={(event) => setAccount(event.target.value)} maxLength={64} aria-label="Account of the new key" placeholder="Account" />
      <input value={origin} onChange={(event) => setOrigin(event.target.value)} maxLength={256} aria-label="Origin of its pages" placeholder="https://shop.example" />
      <label><input type="checkbox" checked={live} onChange={(event) => setLive(event.target.checked)} /> Live</label>
      <button type="submit" className="button" disabled={busy || account === ""}>Make a key</button>
      {text !== "" && <p role="status">Copy it now, it is not shown again: <code>{text}</code></p>}
    </form>
  );
}

function Waiting({ one, busy, onApprove }: { one: Configured; busy: boolean; onApprove: () => void }): ReactElement {
  const changes = Object.entries(one.changes);
  return (
    <li className="panel key" aria-label={`Configuration ${one.digest.slice(0, 12)}`}>
      <div className="agent-head">
        <h3>{one.digest.slice(0, 12)}</h3>
        <button type="button" className="button" disabled={busy} aria-label={`Approve ${one.digest.slice(0, 12)}`} onClick={onApprove}>Approve</button>
      </div>
      <p className="quiet-text">Asked for by a page of {one.origin}. Anybody can send such a request: read what it would run.</p>
      <ul>{changes.map(([path, how]) => <li key={path}>{how}: {path}</li>)}</ul>
      <details>
        <summary>All of it</summary>
        <pre>{one.configuration.instructions}</pre>
        {one.configuration.greeting !== "" && <pre>{one.configuration.greeting}</pre>}
        {one.configuration.tools.map((tool) => <pre key={tool.name}>{`${tool.name}: ${tool.description}\n${tool.source}`}</pre>)}
      </details>
    </li>
  );
}

function AccountApprovals({ account }: { account: string }): ReactElement | null {
  const { value, reload }: Loaded<Approvals> = useLoaded(`${APPROVALS}?account=${encodeURIComponent(account)}`, true);
  const { busy, wrong, act } = useActs(reload);
  if (value === null || value.pending.length + value.approved.length === 0) return null;
  const approve = (digest: string): void => act(() => ask(APPROVALS, { method: "POST", body: { account, digest } }), "approve configurations");
  const withdraw = (digest: string): void => act(() => ask(`${APPROVALS}/${digest}?account=${encodeURIComponent(account)}`, { method: "DELETE" }), "withdraw approvals");
  return (
    <section aria-label={`Approvals of ${account}`}>
      <h2>What live keys of {account} may run</h2>
      <ul className="agent-cards">
        {value.pending.map((one) => <Waiting key={one.digest} one={one} busy={busy} onApprove={() => approve(one.digest)} />)}
        {value.approved.map((one) => (
          <li key={one.digest} className="panel key">
            <div className="agent-head"><h3>{one.digest.slice(0, 12)}</h3><span className="badge" data-live>approved</span></div>
            <p className="quiet-text">{one.configuration.tools.map((tool) => tool.name).join(", ") || "No tools."}</p>
            <button type="button" className="button" disabled={busy} aria-label={`Withdraw ${one.digest.slice(0, 12)}`} onClick={() => withdraw(one.digest)}>Withdraw</button>
          </li>
        ))}
      </ul>
      <p role="status" className="outcome" data-failed>{wrong}</p>
    </section>
  );
}

export function PageKeys(): ReactElement | null {
  const { value, reload }: Loaded<{ keys: PageKey[] }> = useLoaded(KEYS);
  const { busy, wrong, act } = useActs(reload);
  if (value === null) return null;
  const revoke = (id: string): void => act(() => ask(`${KEYS}/${id}`, { method: "DELETE" }), "revoke keys");
  const accounts = [...new Set(value.keys.map((one) => one.account))];
  return (
    <>
      <section aria-label="Keys of pages">
        <h2>Keys of pages and servers</h2>
        <p className="quiet-text">A test key is for pages of this machine; a live key runs what its owner approved, for the pages that it names.</p>
        <MakeKey busy={busy} act={act} />
        <p role="status" className="outcome" data-failed>{wrong}</p>
        <ul className="agent-cards">
          {value.keys.map((one) => (
            <li key={one.id} className="panel key" aria-label={`Key ${one.id}`}>
              <div className="agent-head">
                <h3>{one.name || one.id}</h3>
                <span className="badge" data-live={one.environment === "live" && !one.expired}>{one.expired ? "expired" : `${one.environment} ${one.kind}`}</span>
              </div>
              <p className="quiet-text">{one.account}: {one.origins.join(", ") || "no origins"}</p>
              <button type="button" className="button" disabled={busy} aria-label={`Revoke ${one.id}`} onClick={() => revoke(one.id)}>Revoke</button>
            </li>
          ))}
        </ul>
      </section>
      {accounts.map((account) => <AccountApprovals key={account} account={account} />)}
    </>
  );
}
