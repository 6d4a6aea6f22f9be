/** Asking the person for the token that the gateway wants. */
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { accessToken, unlock } from "./access";

interface UnlockProps {
  /** The administrators' token is wanted, and no other. */
  administrator?: boolean;
  /** What the token that this page has is not for. */
  cannot?: string;
}

export function Unlock({ administrator = false, cannot = "" }: UnlockProps): ReactElement {
  const [given, setGiven] = useState("");
  const [tried] = useState(accessToken() !== "");
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    unlock(given);
    setGiven("");
  };
  const name = administrator ? "Administrator's token" : "Token";
  return (
    <section className="panel key" aria-label={administrator ? "Administrator" : "Token"}>
      {administrator ? <h2>{cannot === "" ? "Only for administrators" : `This token can't ${cannot}`}</h2> : <h1>This Voxbridge asks for a token</h1>}
      {cannot !== "" && <p>It is for calls, and for reading those of its account. Go on with the administrators' token here, or ask whoever runs this Voxbridge.</p>}
      {administrator ? (
        <p>Others than this machine may reach this gateway, so it asks for the token that is in the file of <code>VOXBRIDGE_ADMIN_TOKEN_FILE</code>. This page keeps it until it is closed.</p>
      ) : (
        <p>Others than its own machine may reach it. Whoever runs it makes a token, or a link with one, by <code>voxbridge token --link</code>. This page keeps it until it is closed.</p>
      )}
      <form className="key-form" onSubmit={submit}>
        <input type="password" value={given} onChange={(event) => setGiven(event.target.value)} placeholder="Token" aria-label={name} autoComplete="off" spellCheck={false} />
        <button type="submit" className="button" disabled={given.trim() === ""}>Go on</button>
      </form>
      {tried && cannot === "" && <p role="status" className="outcome" data-failed="true">{administrator ? "That is not the token." : "The token that this page has does not count, or not any more."}</p>}
    </section>
  );
}
