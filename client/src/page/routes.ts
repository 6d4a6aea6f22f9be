/**
 * Which page a spoken or typed path means. Pure: owns the rule that only a declared path of this origin is opened.
 */

/** Paths that may be opened, with the names that people say: `{ "/": "Home", "/orders/:id": "Order" }`. A part that begins with `:` stands for any. */
export type Routes = Readonly<Record<string, string>>;

export interface Route {
  path: string;
  name: string;
}

export const PATH_LIMIT = 256;
const NAMED_LIMIT = 40;
/** Words around a name: "the sessions page, please". */
const FILLERS = new Set(["the", "a", "my", "to", "page", "room", "screen", "tab", "view", "please", "slash"]);

/** The page that a path or a name means. Throws a sentence that names the pages there are. */
export function findRoute(wanted: unknown, routes: Routes, base: string): Route {
  if (typeof wanted !== "string" || wanted.trim() === "" || wanted.length > PATH_LIMIT) throw new Error(`a path has 1 to ${PATH_LIMIT} characters`);
  const path = pathOf(wanted.trim(), base);
  for (const [pattern, name] of Object.entries(routes)) if (path !== null && fits(path, pattern)) return { path, name };
  const said = plain(wanted);
  const meant = Object.entries(routes).find(([pattern, name]) => !pattern.includes(":") && said !== "" && (plain(name) === said || plain(pattern) === said));
  if (meant !== undefined) return { path: meant[0], name: meant[1] };
  throw new Error(`this page opens ${told(routes)} only`);
}

/** The name of an open path; empty where none was declared. */
export function nameOf(path: string, routes: Routes): string {
  return Object.entries(routes).find(([pattern]) => fits(trimmed(path), pattern))?.[1] ?? "";
}

/** The names of the paths that stand for one page each. */
export function named(routes: Routes): string[] {
  return [...new Set(Object.entries(routes).flatMap(([pattern, name]) => (pattern.includes(":") ? [] : [name])))];
}

/** The path alone, as the browser would resolve it; null for what leads elsewhere. */
function pathOf(wanted: string, base: string): string | null {
  try {
    const url = new URL(wanted, base);
    return url.origin === new URL(base).origin ? trimmed(url.pathname) : null;
  } catch {
    return null;
  }
}

function trimmed(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

function fits(path: string, pattern: string): boolean {
  const parts = path.split("/");
  const wanted = pattern.split("/");
  return parts.length === wanted.length && wanted.every((part, index) => (part.startsWith(":") ? parts[index] !== "" : part === parts[index]));
}

function plain(words: string): string {
  return words.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "" && !FILLERS.has(word)).join(" ");
}

function told(routes: Routes): string {
  const open = Object.entries(routes).filter(([pattern]) => !pattern.includes(":"));
  return open.slice(0, NAMED_LIMIT).map(([path, name]) => `${path} (${name})`).join(", ");
}
