/** The fields of a form, one for each part of a schema. Owns no value: the form does. */
import { type ReactElement, useId } from "react";
import { functionName } from "../words";
import { type Draft, fieldOf, initial, isObject, ITEMS_LIMIT, type Problem, resolved, type Schema } from "./schema";

export interface FieldProps {
  name: string;
  path: string;
  schema: Schema;
  root: Schema;
  required: boolean;
  value: Draft;
  problems: readonly Problem[];
  onChange: (value: Draft) => void;
  depth?: number;
}

/** Where the form finds a field again, to go to what is wrong. */
export function fieldId(path: string): string {
  return `field-${path}`;
}

export function FieldView(props: FieldProps): ReactElement {
  const { schema, root, depth = 0 } = props;
  const field = fieldOf(schema, root, depth);
  if (field.kind === "group") return <Group {...props} fields={field.fields} />;
  if (field.kind === "list") return <List {...props} item={field.item} />;
  return <Single {...props} />;
}

function Single(props: FieldProps): ReactElement {
  const { name, path, schema, root, required, value, problems, onChange, depth = 0 } = props;
  const about = useId();
  const own = resolved(schema, root);
  const field = fieldOf(schema, root, depth);
  const problem = problems.find((one) => one.path === path)?.message ?? "";
  const given = typeof value === "string" ? value : "";
  const common = { id: fieldId(path), "aria-describedby": about, "aria-invalid": problem !== "", "aria-required": required };
  const example = own.examples?.[0];
  const placeholder = example === undefined ? undefined : `Such as ${typeof example === "string" ? example : JSON.stringify(example)}`;
  const written = { ...common, value: given, placeholder: field.kind === "json" ? "JSON" : placeholder };
  const onText = (event: { target: { value: string } }): void => onChange(event.target.value);
  const input = (): ReactElement => {
    if (field.kind === "boolean") return <input {...common} type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} />;
    if (field.kind === "number") return <input {...written} type="text" inputMode={field.whole ? "numeric" : "decimal"} autoComplete="off" onChange={onText} />;
    if (field.kind === "text" && !field.long) return <input {...written} type="text" autoComplete="off" onChange={onText} />;
    if (field.kind !== "choice") return <textarea {...written} rows={field.kind === "json" ? 4 : 3} spellCheck={field.kind !== "json"} onChange={onText} />;
    return (
      <select {...common} value={given} onChange={onText}>
        <option value="">{required ? "Choose one" : "As usual"}</option>
        {field.values.map((one) => <option key={JSON.stringify(one)} value={JSON.stringify(one)}>{worded(one)}</option>)}
      </select>
    );
  };
  return (
    <div className="field" data-kind={field.kind}>
      <label htmlFor={fieldId(path)}>{functionName(name)}{!required && field.kind !== "boolean" && <small> optional</small>}</label>
      {input()}
      <p id={about} className="field-about" data-wrong={problem !== ""}>{problem !== "" ? problem : described(own)}</p>
    </div>
  );
}

function worded(value: unknown): string {
  if (value === true) return "Yes";
  if (value === false) return "No";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The description, and the limits in words. */
function described({ description = "", minimum, maximum, maxLength }: Schema): string {
  const range = minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}.` : minimum !== undefined ? `${minimum} or more.` : maximum !== undefined ? `${maximum} or less.` : "";
  const length = maxLength === undefined ? "" : `At most ${maxLength.toLocaleString("en")} characters.`;
  return [description, range, length].filter((part) => part !== "").join(" ");
}

function Group({ name, path, schema, root, required, value, problems, onChange, fields, depth = 0 }: FieldProps & { fields: [string, Schema, boolean][] }): ReactElement {
  const given = isObject(value) ? (value as Record<string, Draft>) : {};
  const parts = fields.map(([part, of, needed]) => (
    <FieldView
      key={part}
      name={part}
      path={path === "" ? part : `${path}.${part}`}
      schema={of}
      root={root}
      required={needed}
      value={given[part] ?? ""}
      problems={problems}
      onChange={(next) => onChange({ ...given, [part]: next })}
      depth={depth + 1}
    />
  ));
  if (path === "") return <>{parts}</>;
  return (
    <fieldset className="field-group">
      <legend>{functionName(name)}{!required && <small> optional</small>}</legend>
      <p className="field-about">{described(resolved(schema, root))}</p>
      {parts}
    </fieldset>
  );
}

function List({ name, path, schema, root, required, value, problems, onChange, item, depth = 0 }: FieldProps & { item: Schema }): ReactElement {
  const items = Array.isArray(value) ? value : [];
  const { maxItems = ITEMS_LIMIT } = resolved(schema, root);
  const problem = problems.find((one) => one.path === path)?.message ?? "";
  const title = functionName(name);
  return (
    <fieldset className="field-group" id={fieldId(path)} tabIndex={-1}>
      <legend>{title}{!required && <small> optional</small>}</legend>
      <p className="field-about" data-wrong={problem !== ""}>{problem !== "" ? problem : described(resolved(schema, root))}</p>
      {items.map((one, index) => (
        // Items have no name but their place.
        <div key={index} className="field-item">
          <FieldView
            name={`${name} ${index + 1}`}
            path={`${path}.${index}`}
            schema={item}
            root={root}
            required
            value={one}
            problems={problems}
            onChange={(next) => onChange(items.map((before, at) => (at === index ? next : before)))}
            depth={depth + 1}
          />
          <button type="button" className="button" aria-label={`Remove ${title.toLowerCase()} ${index + 1}`} onClick={() => onChange(items.filter((_, at) => at !== index))}>Remove</button>
        </div>
      ))}
      <button type="button" className="button" disabled={items.length >= Math.min(maxItems, ITEMS_LIMIT)} onClick={() => onChange([...items, initial(item, root, depth + 1)])}>Add {items.length === 0 ? title.toLowerCase() : "another"}</button>
    </fieldset>
  );
}
