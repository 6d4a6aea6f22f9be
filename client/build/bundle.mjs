/**
 * Builds client/dist/{client,react,page}.js, the npm package of them, and studio/dist. Owns what is inlined, what is external and what the files are called.
 * `--dev` leaves the names unhashed and has source maps inline; those of the client's scripts stand beside them else.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { pack } from "./package.mjs";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const BANNER = "/*! Voxbridge, Apache-2.0 */";

/** `import text from "inline:./worklet.ts"`: the bundled, minified text of a script for another thread, or of styles that one room alone needs. @type {esbuild.Plugin} */
export const inline = {
  name: "inline",
  setup(build) {
    build.onResolve({ filter: /^inline:/ }, ({ path, resolveDir }) => ({ path: resolve(resolveDir, path.slice(7)), namespace: "inline" }));
    build.onLoad({ filter: /.*/, namespace: "inline" }, async ({ path }) => {
      const built = await esbuild.build({ entryPoints: [path], bundle: true, minify: true, write: false, format: "iife", target: "es2022", metafile: true });
      const watchFiles = Object.keys(built.metafile.inputs).map((file) => resolve(file));
      return { contents: built.outputFiles[0]?.text ?? "", loader: "text", watchFiles };
    });
  },
};

/** The worklets of client.js stand beside it, which saves pages a fifth of it until somebody talks. @type {esbuild.Plugin} */
const beside = {
  name: "beside",
  setup(build) {
    build.onResolve({ filter: /^inline:.*\/worklets\// }, ({ path }) => ({ path, namespace: "beside" }));
    build.onLoad({ filter: /.*/, namespace: "beside" }, () => ({ contents: "", loader: "text" }));
  },
};

/** @type {esbuild.BuildOptions} */
export const common = {
  absWorkingDir: ROOT,
  bundle: true,
  format: "esm",
  target: "es2022",
  plugins: [inline],
  logLevel: "warning",
  legalComments: "none",
  alias: { "voxbridge/react": resolve(ROOT, "client/src/react.ts"), "voxbridge/page": resolve(ROOT, "client/src/page/page.ts"), "voxbridge/probe": resolve(ROOT, "client/src/measuring/probe.ts"), voxbridge: resolve(ROOT, "client/src/client.ts") },
};

/** @param {boolean} development */
async function buildClient(development) {
  await esbuild.build({
    ...common,
    entryPoints: {
      client: "client/src/client.ts",
      react: "client/src/react.ts",
      page: "client/src/page/page.ts",
      ui: "client/src/ui/ui.ts",
      socket: "client/src/socket/serve.ts",
      capture: "client/src/audio/worklets/capture.ts",
      playback: "client/src/audio/worklets/playback.ts",
    },
    outdir: "client/dist",
    plugins: [beside, inline],
    external: ["react"],
    minify: !development,
    sourcemap: development ? "inline" : "linked",
    banner: { js: BANNER },
  });
}

/** @param {boolean} development */
async function buildStudio(development) {
  const built = await esbuild.build({
    ...common,
    entryPoints: { studio: "studio/src/main.tsx", boot: "studio/src/boot.ts", icon: "studio/src/icon.svg" },
    outdir: "studio/dist/assets",
    publicPath: "/assets/",
    splitting: true,
    chunkNames: development ? "[name]" : "[name]-[hash]",
    entryNames: development ? "[name]" : "[name]-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ".woff2": "file", ".svg": "copy" },
    jsx: "automatic",
    jsxDev: false,
    minify: !development,
    sourcemap: development ? "inline" : false,
    metafile: true,
    define: { "process.env.NODE_ENV": development ? '"development"' : '"production"' },
    banner: { js: BANNER },
  });
  const files = Object.keys(built.metafile.outputs).map((file) => `/assets/${basename(file)}`);
  const one = (/** @type {RegExp} */ pattern) => {
    const file = files.find((name) => pattern.test(name));
    if (file === undefined) throw new Error(`The build has no file like ${String(pattern)}.`);
    return file;
  };
  const [, entry] = Object.entries(built.metafile.outputs).find(([, { entryPoint }]) => entryPoint === "studio/src/main.tsx") ?? [];
  const early = (entry?.imports ?? []).filter(({ kind }) => kind === "import-statement").map(({ path }) => `/assets/${basename(path)}`);
  const page = await readFile(resolve(ROOT, "studio/src/index.html"), "utf8");
  await writeFile(
    resolve(ROOT, "studio/dist/index.html"),
    page
      .replace("%STYLE%", one(/\/studio[^/]*\.css$/))
      .replace("%BOOT%", one(/\/boot[^/]*\.js$/))
      .replace("%PRELOAD%", early.map((file) => `<link rel="modulepreload" href="${file}" />`).join("\n    "))
      .replace("%SCRIPT%", one(/\/studio[^/]*\.js$/))
      .replace("%FONT%", one(/inter-latin-wght-normal[^/]*\.woff2$/))
      .replace("%ICON%", one(/icon[^/]*\.svg$/)),
  );
}

/** @param {boolean} development */
export async function build(development) {
  for (const folder of ["client/dist", "studio/dist"]) await rm(resolve(ROOT, folder), { recursive: true, force: true });
  await mkdir(resolve(ROOT, "studio/dist/assets"), { recursive: true });
  await Promise.all([buildClient(development), buildStudio(development)]);
  await pack(ROOT);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build(process.argv.includes("--dev"));
