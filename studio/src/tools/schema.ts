/**
 * A form's fields from a JSON Schema, and the arguments from what was filled in. Pure.
 * Owns what is asked with which kind of field, and what is wrong with an answer before it is sent; the executor checks again.
 */

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  examples?: unknown[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  additionalProperties?: boolean | Schema;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  maxItems?: number;
  $ref?: string;
  $defs?: Record<string, Schema>;
}

/** What a field holds while it is filled in: text for everything that is typed or chosen. */
export type Draft = string | boolean | Draft[] | { [name: string]: Draft };

export type Field =
  | { kind: "text"; long: boolean }
  | { kind: "number"; whole: boolean }
  | { kind: "boolean" }
  | { kind: "choice"; values: unknown[] }
  | { kind: "list"; item: Schema }
  | { kind: "group"; fields: [name: string, schema: Schema, required: boolean][] }
  /** Whatever else: JSON as text. */
  | { kind: "json" };

export interface Problem {
  path: string;
  message: string;
}

const DEPTH = 8;
/** Text that may be longer is asked for in several lines. */
const LINE = 160;
export const ITEMS_LIMIT = 100;

/** The schema itself, where it is a reference or optional. */
export function resolved(schema: Schema, root: Schema, depth = 0): Schema {
  const name = schema.$ref?.split("/").pop();
  const found = name === undefined ? undefined : root.$defs?.[name];
  if (found !== undefined && depth < DEPTH) return resolved({ ...found, ...without(schema, "$ref") }, root, depth + 1);
  const choices = (schema.anyOf ?? schema.oneOf)?.filter(({ type }) => type !== "null");
  const [only] = choices ?? [];
  if (only !== undefined && choices?.length === 1 && depth < DEPTH) return resolved({ ...only, ...without(schema, "anyOf", "oneOf") }, root, depth + 1);
  return schema;
}

function without(schema: Schema, ...names: (keyof Schema)[]): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !(names as string[]).includes(name)));
}

/** Whether null, too, is an answer. */
export function isNullable({ type, anyOf, oneOf, enum: values }: Schema): boolean {
  return (Array.isArray(type) && type.includes("null")) || (anyOf ?? oneOf ?? []).some((one) => one.type === "null") || values?.includes(null) === true;
}

export function fieldOf(schema: Schema, root: Schema, depth = 0): Field {
  const own = resolved(schema, root);
  const types = (Array.isArray(own.type) ? own.type : [own.type]).filter((type) => type !== "null");
  const [type] = types;
  if (own.const !== undefined) return { kind: "choice", values: [own.const] };
  if (own.enum !== undefined) return { kind: "choice", values: own.enum.filter((value) => value !== null) };
  if (types.length !== 1 || depth >= DEPTH) return { kind: "json" };
  if (type === "string") return { kind: "text", long: (own.maxLength ?? LINE) > LINE };
  if (type === "integer" || type === "number") return { kind: "number", whole: type === "integer" };
  if (type === "boolean") return isNullable(schema) ? { kind: "choice", values: [true, false] } : { kind: "boolean" };
  if (type === "array" && own.items !== undefined) return { kind: "list", item: own.items };
  const names = Object.entries(own.properties ?? {});
  if (type === "object" && names.length > 0) return { kind: "group", fields: names.map(([name, of]) => [name, of, own.required?.includes(name) ?? false]) };
  return { kind: "json" };
}

/** What a field holds before anybody touches it. */
export function initial(schema: Schema, root: Schema, depth = 0): Draft {
  const own = resolved(schema, root);
  const field = fieldOf(schema, root, depth);
  const usual = own.default ?? undefined;
  switch (field.kind) {
    case "boolean":
      return usual === true;
    case "list":
      return Array.isArray(usual) ? usual.slice(0, ITEMS_LIMIT).map((value) => drafted(value, field.item, root, depth + 1)) : Array.from({ length: Math.min(own.minItems ?? 0, ITEMS_LIMIT) }, () => initial(field.item, root, depth + 1));
    case "group": {
      const given = isObject(usual) ? usual : {};
      return Object.fromEntries(field.fields.map(([name, of]) => [name, name in given ? drafted(given[name], of, root, depth + 1) : initial(of, root, depth + 1)]));
    }
    default:
      return usual === undefined ? "" : written(usual, field.kind);
  }
}

function drafted(value: unknown, schema: Schema, root: Schema, depth: number): Draft {
  return initial({ ...resolved(schema, root), default: value }, root, depth);
}

function written(value: unknown, kind: Field["kind"]): string {
  return kind !== "json" && kind !== "choice" && typeof value === "string" ? value : JSON.stringify(value);
}

/** The value of a draft, undefined where nothing was filled in; what is wrong is added to `problems`. */
export function collect(draft: Draft, schema: Schema, root: Schema, required: boolean, problems: Problem[], path = "", depth = 0): unknown {
  const own = resolved(schema, root);
  const field = fieldOf(schema, root, depth);
  const wrong = (message: string): unknown => {
    problems.push({ path, message });
    return undefined;
  };
  if (field.kind === "boolean") return draft === true;
  if (field.kind === "group") {
    const given = isObject(draft) ? draft : {};
    const inside: Problem[] = [];
    const found = field.fields.map(([name, of, needed]) => [name, collect(given[name] ?? "", of, root, needed, inside, path === "" ? name : `${path}.${name}`, depth + 1)] as const);
    const value = Object.fromEntries(found.filter(([, one]) => one !== undefined));
    if (!required && isUntouched(draft, schema, root, depth)) return undefined;
    problems.push(...inside);
    return value;
  }
  if (field.kind === "list") {
    const items = Array.isArray(draft) ? draft : [];
    if (items.length === 0 && !required) return undefined;
    if (items.length < (own.minItems ?? 0)) return wrong(`Give at least ${own.minItems ?? 0}.`);
    if (items.length > (own.maxItems ?? Infinity)) return wrong(`Give at most ${own.maxItems ?? 0}.`);
    return items.map((item, index) => collect(item, field.item, root, true, problems, `${path}.${index}`, depth + 1));
  }
  const text = typeof draft === "string" ? draft : "";
  if (text.trim() === "" && !(field.kind === "text" && text !== "")) return required && own.minLength !== 0 ? wrong("Fill this in.") : required ? "" : undefined;
  const value = valueOf(text, field);
  const message = value === undefined ? said(field) : complaint(value, own);
  return message === "" ? value : wrong(message);
}

function valueOf(text: string, field: Field): unknown {
  if (field.kind === "text") return text;
  if (field.kind === "number") {
    const value = Number(text);
    return Number.isFinite(value) && (!field.whole || Number.isInteger(value)) ? value : undefined;
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function said(field: Field): string {
  if (field.kind === "number") return field.whole ? "Give a whole number." : "Give a number.";
  return 'Give JSON, such as {"a": 1} or ["b"].';
}

/** What is wrong with a value; empty where nothing is. */
function complaint(value: unknown, schema: Schema): string {
  if (typeof value === "number") {
    const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = schema;
    if (value < minimum) return `Give ${minimum} or more.`;
    if (value > maximum) return `Give ${maximum} or less.`;
    if (value <= exclusiveMinimum) return `Give more than ${exclusiveMinimum}.`;
    if (value >= exclusiveMaximum) return `Give less than ${exclusiveMaximum}.`;
  }
  if (typeof value === "string" && schema.enum === undefined) {
    const { minLength = 0, maxLength = Infinity, pattern } = schema;
    const length = Array.from(value).length;
    if (length < minLength) return `Give ${minLength} characters or more.`;
    if (length > maxLength) return `Give ${maxLength} characters or less; these are ${length}.`;
    if (pattern !== undefined && !fits(value, pattern)) return `It has the form ${pattern}.`;
  }
  return "";
}

/** A pattern that this browser cannot read is left to the executor. */
function fits(value: string, pattern: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

function isUntouched(draft: Draft, schema: Schema, root: Schema, depth: number): boolean {
  return JSON.stringify(draft) === JSON.stringify(initial(schema, root, depth));
}

export function isObject<Value>(value: Value): value is Value & Record<string, Value extends Draft ? Draft : unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
