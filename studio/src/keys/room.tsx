/** The keys of the providers: which are there and from where, set one, forget one. No key is ever shown again. Below them, those of pages. */
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { ask, isRefused, type Loaded, ReadError, useLoaded } from "../http";
import { Notice } from "../notice";
import { Unlock } from "../unlock";
import { providerName } from "../words";
import { PageKeys } from "./pages";

const KEYS = "/api/config/keys";
/** The gateway's limit of a key. */
const MAX_KEY = 512;

interface Known {
  source: "stored" | "environment" | "none";
  variables: string[];
}

const PURPOSES: Record<string, string> = {
  gemini: "Gemini Live, and Gemini as a language model.",
  anthropic: "Claude as a language model.",
  openai: "OpenAI Realtime, and OpenAI's models for speech and text.",
  assemblyai: "AssemblyAI as a recogniser that hears speech while it is said.",
  elevenlabs: "ElevenLabs as a voice.",
};

function where({ source, variables }: Known): string {
  if (source === "stored") return "Stored here, encrypted.";
  return source === "environment" ? `From the environment (${variables.join(" or ")}).` : `No key. ${variables.join(" or ")} in the environment counts too.`;
}

/** What became of the last change, until the next one. */
interface Outcome {
  text: string;
  failed: boolean;
}

function KeyCard({ provider, known, onChanged }: { provider: string; known: Known; onChanged: () => void }): ReactElement {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const name = providerName(provider);
  const change = async (work: Promise<unknown>, done: string): Promise<void> => {
    setBusy(true);
    setOutcome(null);
    try {
      await work;
      setKey("");
      setOutcome({ text: done, failed: false });
      onChanged();
    } catch (cause) {
      setOutcome({ text: cause instanceof ReadError ? cause.message : "The key could not be sent.", failed: true });
    } finally {
      setBusy(false);
    }
  };
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const given = key.trim();
    if (given !== "" && !busy) void change(ask(KEYS, { method: "POST", body: { provider, key: given } }), "Key saved. It is used from the next call.");
  };
  const forget = (): void => void change(ask(`${KEYS}/${encodeURIComponent(provider)}`, { method: "DELETE" }), "The stored key is gone.");
  return (
    <li className="panel key" aria-label={name}>
      <div className="agent-head">
        <h2>{name}</h2>
        <span className="badge" data-live={known.source !== "none"}>{known.source === "none" ? "no key" : "key set"}</span>
      </div>
      <p>{PURPOSES[provider] ?? "An endpoint of VOXBRIDGE_ENDPOINTS."}</p>
      <div className="key-source">
        <p className="quiet-text">{where(known)}</p>
        {known.source === "stored" && <button type="button" className="button" disabled={busy} aria-label={`Forget the key of ${name}`} onClick={forget}>Forget</button>}
      </div>
      <form className="key-form" onSubmit={submit}>
        <input type="password" value={key} onChange={(event) => setKey(event.target.value)} maxLength={MAX_KEY} placeholder={known.source === "stored" ? "Another key" : "Key"} aria-label={`Key of ${name}`} autoComplete="off" spellCheck={false} />
        <button type="submit" className="button" disabled={busy || key.trim() === ""} aria-label={`Store the key of ${name}`}>Store</button>
      </form>
      <p role="status" className="outcome" data-failed={outcome?.failed ?? false}>{outcome?.text}</p>
    </li>
  );
}

export function KeysRoom(): ReactElement {
  const { value, error, reload }: Loaded<{ keys: Record<string, Known> }> = useLoaded(KEYS);
  const refused = isRefused(error);
  const locked = refused || error?.status === 401;
  return (
    <main className="sessions keys">
      <div className="sessions-head">
        <h1>Keys</h1>
        <p className="quiet-text">Encrypted where they are stored, and never shown again.</p>
      </div>
      {locked && <Unlock administrator cannot={refused ? "read or set keys" : ""} />}
      {error !== null && !locked && <Notice title={error.message}><p>This page looks again every 5 seconds.</p></Notice>}
      {value === null && error === null && <p className="empty-line" role="status">Asking the gateway…</p>}
      {value !== null && !locked && (
        <ul className="agent-cards">
          {Object.entries(value.keys).map(([provider, known]) => <KeyCard key={provider} provider={provider} known={known} onChanged={reload} />)}
        </ul>
      )}
      {value !== null && !locked && <PageKeys />}
    </main>
  );
}
