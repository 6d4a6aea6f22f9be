/** What a function returned: its sentence, its fields as a person reads them, and all of it as JSON. */
import type { ReactElement } from "react";
import { functionName } from "../words";
import { isObject } from "./schema";

const ROWS = 20;
const COLUMNS = 6;
const DEPTH = 3;
/** Characters of the JSON that is shown. */
export const RAW_LIMIT = 65_536;

export function ResultView({ value, ms }: { value: unknown; ms: number }): ReactElement {
  const fields = isObject(value) ? value : { result: value };
  const failed = fields["success"] === false;
  const spoken = typeof fields["spoken"] === "string" ? fields["spoken"] : "";
  const error = failed && typeof fields["error"] === "string" ? fields["error"] : "";
  const rest = Object.entries(fields).filter(([name]) => name !== "spoken" && name !== "success" && !(failed && (name === "error" || name === "code")));
  const raw = JSON.stringify(value, null, 2);
  return (
    <div className="result" data-failed={failed}>
      <h3>{failed ? "It failed" : "Result"} <span className="quiet-text">{ms < 1 ? "under 1 ms" : `${Math.round(ms).toLocaleString("en")} ms`}</span></h3>
      {(error || spoken) !== "" && <p className="result-said">{error || spoken}</p>}
      {rest.length > 0 && <Facts entries={rest} depth={0} />}
      {rest.length === 0 && (error || spoken) === "" && <p className="quiet-text">It returned nothing.</p>}
      <details>
        <summary>As JSON</summary>
        <pre tabIndex={0} role="region" aria-label="Result as JSON">{raw.length > RAW_LIMIT ? `${raw.slice(0, RAW_LIMIT)}\n…` : raw}</pre>
      </details>
    </div>
  );
}

function Facts({ entries, depth }: { entries: [string, unknown][]; depth: number }): ReactElement {
  return (
    <dl className="result-facts">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{functionName(name)}</dt>
          <dd><Value value={value} depth={depth + 1} name={name} /></dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value, depth, name }: { value: unknown; depth: number; name: string }): ReactElement {
  if (Array.isArray(value) && depth <= DEPTH) return <Rows rows={value} depth={depth} name={name} />;
  if (isObject(value) && depth <= DEPTH) return Object.keys(value).length === 0 ? <>none</> : <Facts entries={Object.entries(value)} depth={depth} />;
  return <>{plain(value)}</>;
}

function plain(value: unknown): string {
  if (value === null || value === "") return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

function Rows({ rows, depth, name }: { rows: unknown[]; depth: number; name: string }): ReactElement {
  if (rows.length === 0) return <>none</>;
  const shown = rows.slice(0, ROWS);
  const more = rows.length > ROWS && <p className="quiet-text">{(rows.length - ROWS).toLocaleString("en")} more are in the JSON.</p>;
  const columns = [...new Set(shown.flatMap((row) => (isObject(row) ? Object.keys(row) : [])))];
  if (shown.every(isObject) && columns.length > 0 && columns.length <= COLUMNS) {
    return (
      <>
        <div className="result-table" tabIndex={0} role="region" aria-label={functionName(name)}>
          <table>
            <thead><tr>{columns.map((column) => <th key={column} scope="col">{functionName(column)}</th>)}</tr></thead>
            <tbody>{shown.map((row, index) => <tr key={index}>{columns.map((column) => <td key={column}>{plain(row[column] ?? "")}</td>)}</tr>)}</tbody>
          </table>
        </div>
        {more}
      </>
    );
  }
  return (
    <>
      <ul className="result-list">{shown.map((row, index) => <li key={index}><Value value={row} depth={depth + 1} name={name} /></li>)}</ul>
      {more}
    </>
  );
}
