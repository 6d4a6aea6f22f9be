import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEvent } from "../src/sessions/api";
import { lines } from "../src/sessions/lines";

function event(seq: number, type: string, data: Record<string, unknown> = {}): LogEvent {
  return { seq, id: `e${seq}`, type, v: 1, writer: "voice", visibility: "c", ts: seq, cause: null, data };
}

test("what the user said in a turn that went on after a pause is one line, where it began", () => {
  const found = lines([
    event(1, "speech.started"),
    event(2, "user.said", { text: "And so,", turn: 1 }),
    event(3, "generation.cancelled", { generation: 1 }),
    event(4, "user.said", { text: "my fellow Americans,", turn: 1, continues: true }),
    event(5, "user.said", { text: "ask not.", turn: 1, continues: true }),
    event(6, "agent.said", { text: "Well said.", turn: 1 }),
    event(7, "user.said", { text: "Thanks.", turn: 2 }),
  ]);
  assert.deepEqual(
    found.map(({ index, event: { seq, data } }) => [index, seq, data["text"]]),
    [[1, 2, "And so, my fellow Americans, ask not."], [5, 6, "Well said."], [6, 7, "Thanks."]],
  );
});

test("of a log that let go of a turn's first words the others are shown", () => {
  assert.deepEqual(lines([event(9, "user.said", { text: "ask not.", turn: 4, continues: true })]).length, 1);
});
