/** The licence gate: every locked npm package has a permissive licence. Exits 1 and names what has not. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { ROOT } from "./bundle.mjs";

const PERMISSIVE = new Set(["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "OFL-1.1", "Python-2.0", "Unlicense", "Zlib", "CC0-1.0"]);
/** Of tools that checks run and nothing ships: axe-core asks for changes to its own files to be shared, caniuse-lite (data that eslint's hook rules bring) to be named.
 * The MCP servers, which tests run as programs, are under MIT and Apache-2.0: their field names the file. */
const MCP = "SEE LICENSE IN LICENSE";
const TOOLS = new Map([["@modelcontextprotocol/server-everything", MCP], ["@modelcontextprotocol/server-filesystem", MCP], ["axe-core", "MPL-2.0"], ["caniuse-lite", "CC-BY-4.0"]]);

/** @type {{ packages: Record<string, { license?: string; link?: boolean }> }} */
const lock = JSON.parse(await readFile(resolve(ROOT, "package-lock.json"), "utf8"));
const refused = [];
let count = 0;
for (const [path, { license = "none stated" }] of Object.entries(lock.packages)) {
  if (path === "") continue;
  count += 1;
  const name = path.slice(path.lastIndexOf("node_modules/") + 13);
  const options = license.replace(/[()]/g, "").split(" OR ");
  if (!options.some((option) => option.split(" AND ").every((part) => PERMISSIVE.has(part))) && TOOLS.get(name) !== license) refused.push(`${name}: ${license}`);
}
console.log(refused.length === 0 ? `${count} npm packages, all with permissive licences` : `Licences that are not allowed:\n${refused.join("\n")}`);
if (refused.length > 0) process.exitCode = 1;
