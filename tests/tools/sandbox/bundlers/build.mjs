// Prints, as JSON, the texts of the handlers of page.js after each bundler: {bundler: {handler: text}}. A page sends what `String(handler)` is.
import { dirname, join } from "node:path";
import vm from "node:vm";
import * as babel from "@babel/core";
import presetEnv from "@babel/preset-env";
import swc from "@swc/core";
import * as esbuild from "esbuild";
import * as vite from "vite";

const here = dirname(new URL(import.meta.url).pathname);
const entry = join(here, "page.js");

async function withEsbuild(options) {
  const built = await esbuild.build({ entryPoints: [entry], bundle: true, write: false, format: "iife", logLevel: "silent", ...options });
  return built.outputFiles[0].text;
}

async function withVite(options) {
  const lib = { entry, formats: ["iife"], name: "page" };
  const built = await vite.build({ root: here, configFile: false, logLevel: "silent", build: { write: false, lib, ...options } });
  return [built].flat()[0].output[0].code;
}

const whole = await withEsbuild({ target: "esnext" });
const withSwc = (options) => swc.transformSync(whole, { swcrc: false, ...options }).code;
const withBabel = (targets) =>
  babel.transformSync(whole, { configFile: false, babelrc: false, sourceType: "script", presets: [[presetEnv, { targets }]] }).code;

const made = {
  "esbuild": whole,
  "esbuild, minified": await withEsbuild({ minify: true, target: "esnext" }),
  "esbuild, minified, keeps names": await withEsbuild({ minify: true, keepNames: true }),
  "esbuild, ES2017": await withEsbuild({ target: "es2017" }),
  "esbuild, ES2016": await withEsbuild({ target: "es2016" }),
  "Vite": await withVite({}),
  "Vite, not minified": await withVite({ minify: false }),
  "Vite, ES2015": await withVite({ target: "es2015" }),
  "SWC, minified": withSwc({ jsc: { target: "es2022", minify: { compress: true, mangle: true } }, minify: true }),
  "SWC, ES2017": withSwc({ jsc: { target: "es2017" } }),
  "SWC, ES5": withSwc({ jsc: { target: "es5" } }),
  "Babel, current browsers": withBabel("last 2 chrome versions"),
  "Babel, ES5": withBabel("ie 11"),
};

const found = {};
for (const [name, code] of Object.entries(made)) {
  const context = vm.createContext({});
  vm.runInContext(code, context);
  found[name] = Object.fromEntries(Object.entries(context.exported).map(([tool, handler]) => [tool, String(handler)]));
}
process.stdout.write(JSON.stringify(found));
