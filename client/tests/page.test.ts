import assert from "node:assert/strict";
import { test } from "node:test";
import { cutAt } from "../src/page/content";
import { pageFunctions } from "../src/page/functions";
import { declared } from "../src/tools";
import { findRoute, nameOf, PATH_LIMIT } from "../src/page/routes";

const BASE = "https://shop.example";
const ROUTES = { "/": "Home", "/orders": "Past orders", "/orders/:id": "Order", "/help": "Help" };

test("a path, an address of this origin and a spoken name mean the same page", () => {
  for (const said of ["/orders", "orders", "/orders/", "https://shop.example/orders?x=1#y", "Past orders", "the past orders page, please", "slash orders", "/help/../orders"]) {
    assert.deepEqual(findRoute(said, ROUTES, BASE), { path: "/orders", name: "Past orders" }, said);
  }
  assert.deepEqual(findRoute("/", ROUTES, BASE), { path: "/", name: "Home" });
  assert.deepEqual(findRoute("home page", ROUTES, BASE), { path: "/", name: "Home" });
  assert.deepEqual(findRoute("/orders/42", ROUTES, BASE), { path: "/orders/42", name: "Order" });
});

test("nothing else is opened", () => {
  const elsewhere = ["https://evil.example/orders", "//evil.example/orders", "/\\evil.example/orders", "javascript:alert(1)", "data:text/html,x", "blob:https://shop.example/orders", "/admin", "/orders/1/2", "mailto:a@b", "order", "the page", "http://shop.example/orders", "https://shop.example:8443/orders", "https://user@shop.example:1/orders"];
  for (const said of elsewhere) assert.throws(() => findRoute(said, ROUTES, BASE), /opens \/ \(Home\), \/orders \(Past orders\), \/help \(Help\) only/, said);
  for (const said of [undefined, 5, "", "  ", "x".repeat(PATH_LIMIT + 1)]) assert.throws(() => findRoute(said, ROUTES, BASE), /1 to 256 characters/);
  assert.throws(() => findRoute("x".repeat(PATH_LIMIT), ROUTES, BASE), /only/);
});

test("an open path has its name", () => {
  assert.deepEqual(["/", "/orders/7", "/other"].map((path) => nameOf(path, ROUTES)), ["Home", "Order", ""]);
});

test("a text is cut at whole characters", () => {
  assert.equal(cutAt("grün", 4), "grü");
  assert.equal(cutAt("grün", 3), "gr");
  assert.equal(cutAt("grün", 5), "grün");
  assert.equal(cutAt("😀", 3), "");
});

test("functions are those that the page can answer, and need no window before they are called", () => {
  assert.deepEqual(Object.keys(pageFunctions()).sort(), ["get_current_page", "get_workspace_state", "read_page_content", "switch_theme"]);
  assert.equal(Object.keys(pageFunctions({ routes: ROUTES, switchModel: () => ({}) })).length, 6);
});

test("what may be opened is told by the names of the pages that have one", () => {
  const opens = (routes: Record<string, string>): unknown => declared(pageFunctions({ routes })).find(({ name }) => name === "navigate_page")?.parameters;
  assert.deepEqual(opens(ROUTES), { type: "object", properties: { path: { type: "string", enum: ["Home", "Past orders", "Help"] } }, required: ["path"] });
  assert.equal(opens({ "/:id": "Thing" }), undefined);
  const many = (count: number): Record<string, string> => Object.fromEntries(Array.from({ length: count }, (_, number) => [`/${number}`, `Page ${number}`]));
  assert.notEqual(opens(many(64)), undefined);
  assert.equal(opens(many(65)), undefined);
});

test("a model is switched by the page, and a theme is one of three", async () => {
  let theme: "light" | "dark" | "system" = "system";
  const tools = pageFunctions({ theme: { get: () => theme, set: (next) => (theme = next) }, switchModel: (model) => ({ model }) });
  const run = (name: string, args: Record<string, unknown>): unknown => (tools[name] as (args: Record<string, unknown>) => unknown)(args);
  assert.deepEqual(await run("switch_model", { model: " gemini " }), { success: true, model: "gemini" });
  for (const model of ["", "x".repeat(129), 5]) await assert.rejects(run("switch_model", { model }) as Promise<unknown>, /1 to 128 characters/);
  assert.deepEqual(run("switch_theme", { theme: "dark" }), { success: true, theme: "dark", spoken: "The theme is dark now." });
  assert.throws(() => run("switch_theme", { theme: "plaid" }), /one of light, dark, system/);
  assert.equal(theme, "dark");
});
