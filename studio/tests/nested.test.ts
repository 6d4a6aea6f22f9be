/** Sessions of agents stand below the session whose function asked for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nested, type SessionSummary } from "../src/sessions/api";

function session(id: string, parent?: string): SessionSummary {
  return { id, mode: "local", started_at_ms: 0, state: "ended", turns: 1, ...(parent === undefined ? {} : { parent }) };
}

test("a child stands below its parent, the first one first", () => {
  const found = nested([session("c2", "a"), session("b"), session("c1", "a"), session("a")]);
  assert.deepEqual(found.map(({ id }) => id), ["b", "a", "c1", "c2"]);
});

test("a child whose parent is on another page keeps its place", () => {
  const found = nested([session("c", "x"), session("a"), session("r", "@local")]);
  assert.deepEqual(found.map(({ id }) => id), ["c", "a", "r"]);
});
