/** Runs every *.test.ts(x) of client/ and studio/ with Node's own runner, each bundled first, so that any Node from 20 on takes them. */
import { spawn } from "node:child_process";
import { mkdir, readdir, rm } from "node:fs/promises";
import { resolve } from "node:path";
import * as esbuild from "esbuild";
import { build, common, ROOT } from "./bundle.mjs";

const out = resolve(ROOT, "client/dist/tests");
await build(false);
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const entryPoints = [];
for (const folder of ["client/tests", "studio/tests"]) {
  for (const file of await readdir(resolve(ROOT, folder), { recursive: true })) if (/\.test\.tsx?$/.test(file)) entryPoints.push(`${folder}/${file}`);
}
await esbuild.build({ ...common, entryPoints, outdir: out, outbase: ROOT, platform: "node", packages: "external", jsx: "automatic", sourcemap: "inline" });
const files = entryPoints.map((file) => resolve(out, file.replace(/\.tsx?$/, ".js")));
const run = spawn(process.execPath, ["--enable-source-maps", "--test", "--test-timeout=60000", ...files.sort()], { cwd: ROOT, stdio: "inherit" });
run.on("exit", (code) => (process.exitCode = code ?? 1));
