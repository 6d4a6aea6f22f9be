/** Every function of the installation, and a form to try each. */
import { type ReactElement, useDeferredValue, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { useLoaded, willPass } from "../http";
import { Icon } from "../icons";
import { Notice } from "../notice";
import { functionName } from "../words";
import { type Catalogue, type FunctionCard, FUNCTIONS } from "./api";
import { Badges } from "./badges";
import { categories } from "./catalogue";
import { TryIt } from "./try-it";

export function Functions({ name }: { name: string }): ReactElement {
  const { value, error } = useLoaded<Catalogue>(FUNCTIONS);
  const [query, setQuery] = useState("");
  const shown = useDeferredValue(query);
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const inField = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog") !== null;
      if (event.key !== "/" || inField) return;
      event.preventDefault();
      search.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const wanted = decoded(name);
  const card = value?.functions.find((one) => one.name === wanted);
  return (
    <div className="tools-functions" data-open={wanted !== ""}>
      <label className="search">
        <Icon name="search" size={18} />
        <input ref={search} type="search" value={query} onChange={(event) => setQuery(event.target.value)} placeholder="Name, effect or category" aria-label="Search tools" />
      </label>
      {error !== null && <Notice title={error.message}>{willPass(error) && <p>This page looks again every 5 seconds.</p>}</Notice>}
      {value === null && error === null && <p className="empty-line" role="status">Reading the catalogue…</p>}
      {value?.functions.length === 0 && (
        <div className="empty">
          <h2>No tool yet</h2>
          <p>The tools service publishes its functions when it starts: look at <a href="/readyz">/readyz</a>, and at <code>VOXBRIDGE_TOOL_PACKS</code>.</p>
        </div>
      )}
      {value !== null && value.functions.length > 0 && (
        <div className="tools-panes">
          <List functions={value.functions} query={shown} open={wanted} />
          <div className="tools-one">
            {wanted !== "" && <Link to="/tools" className="back">All tools</Link>}
            {card !== undefined && <TryIt key={card.name} card={card} />}
            {card === undefined && wanted !== "" && <Notice title={`There is no tool ${wanted}.`}><p>It may have been removed, or its pack is not loaded. <Link to="/tools">See all tools</Link>.</p></Notice>}
            {wanted === "" && <p className="empty-line tools-hint">Choose a tool to see what it needs, and to run it.</p>}
          </div>
        </div>
      )}
    </div>
  );
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function List({ functions, query, open }: { functions: readonly FunctionCard[]; query: string; open: string }): ReactElement {
  const found = categories(functions, query);
  const count = found.reduce((sum, one) => sum + one.functions.length, 0);
  return (
    <nav className="tools-list" aria-label="Tools by category">
      <p className="quiet-text" role="status">{count === functions.length ? `${count} tools` : count === 0 ? `No tool matches “${query}”.` : `${count} of ${functions.length} tools`}</p>
      {found.map(({ name, functions: some }) => (
        <section key={name} aria-label={functionName(name)}>
          <h2>{functionName(name)} <span>{some.length}</span></h2>
          <ul>
            {some.map((one) => (
              <li key={one.name}>
                <Link to={`/tools/${encodeURIComponent(one.name)}`} className="tool-row" aria-current={one.name === open ? "page" : undefined}>
                  <b>{functionName(one.name)}</b>
                  <Badges card={one} />
                  <small>{one.description}</small>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}
