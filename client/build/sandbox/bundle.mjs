/**
 * Builds voxbridge/services/tools/sandbox/script/vendor: the libraries that are loaded into the sandbox of handlers, one file each, and their
 * licences. The files are committed, so that a Python environment needs no npm; `--check` exits 1 where they differ from what would be built.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import * as esbuild from "esbuild";
import { ROOT } from "../bundle.mjs";

const FOLDER = resolve(ROOT, "voxbridge/services/tools/sandbox/script/vendor");
const LICENCES = {
  acorn: "LICENSE", "whatwg-url": "LICENSE.txt", tr46: "LICENSE.md", "webidl-conversions": "LICENSE.md", punycode: "LICENSE-MIT.txt", "@exodus/bytes": "LICENSE",
};

/** @param {string} name */
async function bundled(name) {
  const built = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: [`client/build/sandbox/${name}.js`],
    bundle: true,
    format: "iife",
    target: "es2022",
    minify: true,
    charset: "ascii",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["react-native"], // of @exodus/bytes: no encoder of the engine is looked for, since there is none
    legalComments: "none",
    write: false,
    logLevel: "warning",
  });
  return built.outputFiles[0]?.text ?? "";
}

async function licences() {
  const texts = Object.entries(LICENCES).map(async ([name, file]) => {
    const [text, about] = await Promise.all([file, "package.json"].map((one) => readFile(resolve(ROOT, "node_modules", name, one), "utf8")));
    return `${name} ${JSON.parse(about ?? "{}").version}\n\n${text?.trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}

const files = { "acorn.js": await bundled("acorn"), "web.js": await bundled("web"), "LICENCES.txt": await licences() };
await mkdir(FOLDER, { recursive: true });
for (const [name, text] of Object.entries(files)) {
  const path = resolve(FOLDER, name);
  if (process.argv.includes("--check")) {
    if ((await readFile(path, "utf8").catch(() => "")) !== text) {
      console.error(`${path} is not what the locked packages give: run \`npm run sandbox\` and commit it.`);
      process.exitCode = 1;
    }
  } else await writeFile(path, text);
}
