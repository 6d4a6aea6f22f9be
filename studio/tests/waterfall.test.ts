import assert from "node:assert/strict";
import { test } from "node:test";
import { stages } from "../src/talk/waterfall";
import { ago, duration, functionName } from "../src/words";

test("each stage lasts from the stamp before to its own, and stages without a stamp are left out", () => {
  assert.deepEqual(stages({ end_of_turn: 200, llm_first_token: 700, first_audio_heard: 1100 }), [
    { name: "Turn end", from: 0, to: 200 },
    { name: "First token", from: 200, to: 700 },
    { name: "Heard", from: 700, to: 1100 },
  ]);
});

test("stamps that came in another order are shown in order of time", () => {
  assert.deepEqual(stages({ end_of_turn: 300, stt_final: 250 }).map(({ name }) => name), ["Speech to text", "Turn end"]);
});

test("times and functions are in words that people use", () => {
  assert.deepEqual([duration(84), duration(1240), duration(12_300), duration(125_000)], ["84 ms", "1.24 s", "12.3 s", "2 m 05 s"]);
  assert.equal(functionName("get_time"), "Get time");
  assert.equal(ago(0, 120_000), "2 min ago");
});
