/** The size gate: what a page downloads, gzip -9, against its limit. Exits 1 where one is over. */
import { readdir, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { ROOT } from "./bundle.mjs";

const KB = 1000;
const index = await readFile(resolve(ROOT, "studio/dist/index.html"), "utf8").catch(() => "");
const isEarly = (/** @type {string} */ name) => name.endsWith(".js") && index.includes(name);
const isLate = (/** @type {string} */ name) => name.endsWith(".js") && !index.includes(name);
/** xterm.js, which an open terminal loads. */
const isTerminal = (/** @type {string} */ name) => name.startsWith("terminal-");
/** @type {[what: string, folder: string, chosen: RegExp | ((name: string) => boolean), limit: number][]} */
const GATES = [
  ["client.js", "client/dist", /^client\.js$/, 17 * KB],
  ["react.js", "client/dist", /^react\.js$/, 19 * KB],
  ["page.js", "client/dist", /^page\.js$/, 4 * KB],
  ["client.js with its UI", "client/dist", /^(client|ui)\.js$/, 25 * KB],
  ["Studio, at first", "studio/dist/assets", isEarly, 120 * KB],
  ["Studio, later", "studio/dist/assets", (name) => isLate(name) && !isTerminal(name), 60 * KB],
  ["Studio, terminals", "studio/dist/assets", (name) => isLate(name) && isTerminal(name), 95 * KB],
  ["Studio, styles", "studio/dist/assets", /\.css$/, 12 * KB],
];

let failed = false;
console.log(`${"file".padEnd(22)}${"gzip -9".padStart(10)}${"limit".padStart(10)}`);
for (const [what, folder, chosen, limit] of GATES) {
  const files = (await readdir(resolve(ROOT, folder))).filter((name) => (chosen instanceof RegExp ? chosen.test(name) : chosen(name)));
  let size = 0;
  for (const name of files) size += gzipSync(await readFile(resolve(ROOT, folder, name)), { level: 9 }).length;
  const over = files.length === 0 || size > limit;
  failed ||= over;
  console.log(`${what.padEnd(22)}${`${(size / KB).toFixed(1)} kB`.padStart(10)}${`${limit / KB} kB`.padStart(10)}${over ? "  too large, or missing" : ""}`);
}
if (failed) process.exitCode = 1;
