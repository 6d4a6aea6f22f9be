import assert from "node:assert/strict";
import { test } from "node:test";
import { Facts } from "../src/resume/facts";

test("a fact is taken once and in order, whichever gateway tells it", () => {
  const facts = new Facts();
  const told = [3, 7, 7, 5, 9, 3, 9, 12];
  assert.deepEqual(told.filter((seq) => facts.take({ type: "transcript", seq })), [3, 7, 9, 12]);
  assert.equal(facts.last, 12);
});

test("what is about the moment always passes and moves nothing", () => {
  const facts = new Facts();
  facts.take({ type: "transcript", seq: 4 });
  assert.ok(facts.take({ type: "state" }));
  assert.equal(facts.last, 4);
});

test("an end that names its error is one fact in two messages", () => {
  const facts = new Facts();
  assert.ok(facts.take({ type: "error", seq: 8 }));
  assert.ok(facts.take({ type: "session_ended", seq: 8 }));
  assert.ok(!facts.take({ type: "error", seq: 8 }));
});

test("after a jump only what follows is news, also where the log is younger than what was seen", () => {
  const facts = new Facts();
  facts.take({ type: "text", seq: 40 });
  facts.jump(12);
  assert.ok(!facts.take({ type: "text", seq: 11 }));
  assert.ok(facts.take({ type: "text", seq: 13 }));
});
