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
      {administrator ? <h2>{cannot === "" ? "Only for administrators" : `This token can't ${cannot}`}</h2> : <h1>Enter a token to continue</h1>}
      {cannot !== "" && <p>It can make calls and read the calls of its account. Enter the administrator token, or ask your administrator.</p>}
      {administrator ? (
        <p>Other machines can reach this gateway, so it needs the administrator token. You will find it in the file that <code>VOXBRIDGE_ADMIN_TOKEN_FILE</code> names. This page keeps it until it is closed.</p>
      ) : (
        <p>Other machines can reach this gateway, so it needs a token. Its administrator makes one, or a link that contains one, with <code>voxbridge token --link</code>. This page keeps it until it is closed.</p>
      )}
      <form className="key-form" onSubmit={submit}>
        <input type="password" value={given} onChange={(event) => setGiven(event.target.value)} placeholder="Token" aria-label={name} autoComplete="off" spellCheck={false} />
        <button type="submit" className="button" disabled={given.trim() === ""}>Go on</button>
      </form>
      {tried && cannot === "" && <p role="status" className="outcome" data-failed="true">{administrator ? "This is not the administrator token." : "This token is not valid, or has expired."}</p>}
    </section>
  );
}
