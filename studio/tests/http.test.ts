import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { ask, complaint, isRefused, ReadError, willPass } from "../src/http";

const fetched = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = fetched;
});

/** What asking comes to where the gateway answers like this. */
async function refusal(status: number, code: string): Promise<ReadError> {
  globalThis.fetch = () => Promise.resolve(Response.json({ code, message: "No." }, { status }));
  const cause: unknown = await ask("/api/sessions").then(() => null, (error: unknown) => error);
  assert.ok(cause instanceof ReadError);
  return cause;
}

test("what a token is not for is told once, with what to do, and not asked for again", async () => {
  const refused = await refusal(403, "PERMISSION_DENIED");
  assert.ok(isRefused(refused));
  assert.equal(willPass(refused), false);
  assert.equal(complaint(refused, "read this call"), "This token can't read this call. The administrators' token can: give it in Keys.");
});

test("a host that is not let in is no matter of the token", async () => {
  const refused = await refusal(403, "FORBIDDEN_ORIGIN");
  assert.equal(isRefused(refused), false);
  assert.equal(willPass(refused), false);
  assert.equal(complaint(refused, "read this call"), "No.");
});

test("only what may be otherwise in a moment is asked for again", async () => {
  for (const [status, again] of [[404, false], [422, false], [429, true], [500, true], [503, true]] as const) {
    assert.equal(willPass(await refusal(status, "X")), again, String(status));
  }
  assert.equal(willPass(new ReadError(0, "The gateway does not answer.")), true);
});
