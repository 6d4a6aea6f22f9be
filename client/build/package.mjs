/**
 * Packs client/dist/voxbridge.tgz, which `npm install http://GATEWAY/voxbridge.tgz` installs: the bundles, their types, and what npm needs
 * to know of them. Owns what is in the package, and its entry points.
 */
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";

const SCRIPTS = ["client.js", "react.js", "page.js", "ui.js", "socket.js", "capture.js", "playback.js"];
const README = `# voxbridge

Voice agents in web pages: \`import { useVoiceAgent } from "voxbridge/react"\`, or \`import { VoiceAgent } from "voxbridge"\`.
The gateway that this package came from has its documentation.
`;

/** @param {string} root */
export async function pack(root) {
  const dist = resolve(root, "client/dist");
  const folder = resolve(dist, "package");
  const { version, license } = JSON.parse(await readFile(resolve(root, "package.json"), "utf8"));
  await mkdir(folder, { recursive: true });
  for (const name of SCRIPTS) {
    await copyFile(resolve(dist, name), resolve(folder, name));
    await copyFile(resolve(dist, `${name}.map`), resolve(folder, `${name}.map`)).catch(() => undefined); // inline with `--dev`
  }
  await copyFile(resolve(root, "LICENSE"), resolve(folder, "LICENSE"));
  await writeFile(resolve(folder, "README.md"), README);
  const entry = (/** @type {string} */ types, /** @type {string} */ script) => ({ types: `./types/${types}.d.ts`, default: `./${script}.js` });
  const told = {
    name: "voxbridge",
    version,
    description: "Voice agents in web pages.",
    license,
    type: "module",
    sideEffects: false,
    exports: { ".": entry("client", "client"), "./react": entry("react", "react"), "./page": entry("page/page", "page") },
    peerDependencies: { react: ">=18" },
    peerDependenciesMeta: { react: { optional: true } },
  };
  await writeFile(resolve(folder, "package.json"), `${JSON.stringify(told, null, 2)}\n`);
  declare(root, resolve(folder, "types"));
  const { stdout } = await promisify(execFile)("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", dist], { cwd: folder });
  await rename(resolve(dist, stdout.trim()), resolve(dist, "voxbridge.tgz"));
  await rm(folder, { recursive: true });
}

/**
 * Write the types of the entry points.
 * @param {string} root
 * @param {string} outDir
 */
function declare(root, outDir) {
  const source = resolve(root, "client/src");
  const { config } = ts.readConfigFile(resolve(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: ["client/src"] }, ts.sys, root);
  const names = ["client.ts", "react.ts", "page/page.ts"].map((name) => resolve(source, name));
  const program = ts.createProgram(
    [...names, ...ts.sys.readDirectory(source, [".d.ts"])],
    { ...options, noEmit: false, declaration: true, emitDeclarationOnly: true, outDir, rootDir: source },
  );
  const { diagnostics } = program.emit();
  if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, { getCanonicalFileName: (name) => name, getCurrentDirectory: () => root, getNewLine: () => "\n" }));
}
