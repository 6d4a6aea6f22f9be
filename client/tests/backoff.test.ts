import assert from "node:assert/strict";
import { test } from "node:test";
import { BASE_MS, CAP_MS, interrupted, LATER_MS, pause, WINDOW_MS } from "../src/resume/backoff";

const LOSS = { reason: "gone", later: false, now: 1_000, random: 0.5, windowMs: WINDOW_MS, attempts: 0 };

test("a pause is anywhere from nothing to a limit that doubles with each try, up to half a second for 30 tries and to 5 s then", () => {
  assert.deepEqual([0, 1, 2, 3, 29, 30, 100].map((attempt) => pause(attempt, false, 0.999_999)), [250, 500, 500, 500, 500, 5000, 5000]);
  assert.equal(pause(3, false, 0), 0);
  assert.equal(pause(0, false, 0.5), BASE_MS / 2);
});

test("where the gateway said later, a pause is never below 2 s", () => {
  assert.equal(pause(0, true, 0), LATER_MS);
  assert.equal(pause(100, true, 0.999_999), LATER_MS + CAP_MS);
});

test("the pages of a gateway that died do not come back at the same time", () => {
  const waits = Array.from({ length: 1000 }, (_, i) => pause(30, false, i / 1000));
  const tenths = Array.from({ length: 10 }, (_, i) => waits.filter((wait) => wait >= i * 500 && wait < (i + 1) * 500).length);
  assert.deepEqual(tenths, Array(10).fill(100));
});

test("an interruption counts its tries from one loss to the limit of the window, where the last one is made", () => {
  let now = 1_000;
  let tries = 0;
  let interruption = interrupted(null, LOSS);
  while (interruption !== null) {
    tries += 1;
    assert.equal(interruption.attempt, tries);
    assert.equal(interruption.since, 1_000);
    assert.equal(interruption.until, 1_000 + WINDOW_MS);
    now = interruption.nextTryAt ?? now;
    assert.ok(now <= interruption.until);
    interruption = interrupted(interruption, { ...LOSS, now, random: 0.9 });
  }
  assert.equal(now, 1_000 + WINDOW_MS);
  assert.ok(tries > 40 && tries < 70, `${tries}`);
});

test("tries that a connection made which did not hold count on", () => {
  assert.equal(interrupted(null, { ...LOSS, attempts: 30, random: 0.999_999 })?.nextTryAt, 1_000 + 5_000);
});
