import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, type Draft, fieldOf, initial, ITEMS_LIMIT, type Problem, type Schema } from "../src/tools/schema";

const SIZE: Schema = { type: "object", properties: { width: { type: "integer", minimum: 1 }, height: { type: "integer", default: 1 } }, required: ["width"] };
const ROOT: Schema = {
  type: "object",
  $defs: { Size: SIZE },
  properties: {
    colour: { enum: ["red", "blue"] },
    size: { $ref: "#/$defs/Size" },
    times: { type: "integer", minimum: 1, maximum: 3, default: 1 },
    ratio: { type: "number", exclusiveMinimum: 0 },
    words: { anyOf: [{ type: "array", items: { type: "string", minLength: 1 }, maxItems: 2 }, { type: "null" }], default: null },
    loud: { type: "boolean", default: true },
    sure: { anyOf: [{ type: "boolean" }, { type: "null" }], default: null },
    note: { type: "string", maxLength: 5 },
    more: { type: "object", additionalProperties: true },
  },
  required: ["colour", "size"],
};

function filled(change: Record<string, Draft>): { value: unknown; problems: Problem[] } {
  const problems: Problem[] = [];
  const draft = { ...(initial(ROOT, ROOT) as Record<string, Draft>), ...change };
  return { value: collect(draft, ROOT, ROOT, true, problems), problems };
}

test("each schema has its kind of field", () => {
  const kinds = Object.entries(ROOT.properties!).map(([name, schema]) => [name, fieldOf(schema, ROOT).kind]);
  assert.deepEqual(kinds, [["colour", "choice"], ["size", "group"], ["times", "number"], ["ratio", "number"], ["words", "list"], ["loud", "boolean"], ["sure", "choice"], ["note", "text"], ["more", "json"]]);
  assert.deepEqual(fieldOf({ type: "string", maxLength: 4_000 }, ROOT), { kind: "text", long: true });
  assert.deepEqual(fieldOf({ type: ["string", "integer"] }, ROOT), { kind: "json" });
  assert.deepEqual(fieldOf({}, ROOT), { kind: "json" });
  assert.deepEqual(fieldOf({ const: 5 }, ROOT), { kind: "choice", values: [5] });
});

test("fields begin with their defaults", () => {
  assert.deepEqual(initial(ROOT, ROOT), { colour: "", size: { width: "", height: "1" }, times: "1", ratio: "", words: [], loud: true, sure: "", note: "", more: "" });
  assert.deepEqual(initial({ type: "array", items: { type: "string" }, default: ["a", "b"] }, {}), ["a", "b"]);
  assert.deepEqual(initial({ type: "array", items: { type: "string" }, minItems: 2 }, {}), ["", ""]);
  assert.equal((initial({ type: "array", items: { type: "string" }, minItems: 1e9 }, {}) as Draft[]).length, ITEMS_LIMIT);
});

test("arguments are what was filled in, typed; the rest is left to the function", () => {
  const { value, problems } = filled({ colour: '"red"', size: { width: "2", height: "1" }, ratio: "0.5", words: ["a"], sure: "false", note: "hi", more: '{"a": [1]}' });
  assert.deepEqual(problems, []);
  assert.deepEqual(value, { colour: "red", size: { width: 2, height: 1 }, times: 1, ratio: 0.5, words: ["a"], loud: true, sure: false, note: "hi", more: { a: [1] } });
  assert.deepEqual(filled({ colour: '"red"', size: { width: "2", height: "" } }).value, { colour: "red", size: { width: 2 }, times: 1, loud: true });
});

test("what is wrong is said at its field", () => {
  const at = (change: Record<string, Draft>): string[] => filled({ colour: '"red"', size: { width: "1", height: "1" }, ...change }).problems.map(({ path, message }) => `${path}: ${message}`);
  assert.deepEqual(at({}), []);
  assert.deepEqual(at({ colour: "" }), ["colour: Fill this in."]);
  assert.deepEqual(at({ size: { width: "", height: "1" } }), ["size.width: Fill this in."]);
  assert.deepEqual(at({ size: { width: "0", height: "1.5" } }), ["size.width: Give 1 or more.", "size.height: Give a whole number."]);
  assert.deepEqual(at({ times: "4" }), ["times: Give 3 or less."]);
  assert.deepEqual(at({ times: "many" }), ["times: Give a whole number."]);
  assert.deepEqual(at({ ratio: "0" }), ["ratio: Give more than 0."]);
  assert.deepEqual(at({ words: ["a", "b", "c"] }), ["words: Give at most 2."]);
  assert.deepEqual(at({ words: [""] }), ["words.0: Fill this in."]);
  assert.deepEqual(at({ note: "123456" }), ["note: Give 5 characters or less; these are 6."]);
  assert.deepEqual(at({ note: "12345" }), []);
  assert.deepEqual(at({ more: "{" }), ['more: Give JSON, such as {"a": 1} or ["b"].']);
});

test("an optional group that nobody touched is not sent, and one that was is", () => {
  const root: Schema = { type: "object", properties: { size: { anyOf: [SIZE, { type: "null" }], default: null } } };
  const untouched = initial(root, root);
  const problems: Problem[] = [];
  assert.deepEqual(collect(untouched, root, root, true, problems), {});
  assert.deepEqual(collect({ size: { width: "", height: "3" } }, root, root, true, problems), { size: { height: 3 } });
  assert.deepEqual(problems, [{ path: "size.width", message: "Fill this in." }]);
});

test("a schema that refers to itself ends", () => {
  const root: Schema = { $defs: { Node: { type: "object", properties: { next: { $ref: "#/$defs/Node" } } }, Loop: { $ref: "#/$defs/Loop" } }, type: "object", properties: { node: { $ref: "#/$defs/Node" }, loop: { $ref: "#/$defs/Loop" } } };
  assert.deepEqual(collect(initial(root, root), root, root, true, []), {});
});

test("a pattern counts where the browser can read it", () => {
  const problems: Problem[] = [];
  collect("b", { type: "string", pattern: "^a" }, {}, true, problems, "x");
  collect("b", { type: "string", pattern: "(?P<n>b)" }, {}, true, problems, "y");
  assert.deepEqual(problems, [{ path: "x", message: "It has the form ^a." }]);
});
