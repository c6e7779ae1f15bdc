import assert from "node:assert/strict";
import { test } from "node:test";
import type { JSONObject } from "../src/api/types";
import { findFaults, fits } from "../src/schemaform/faults";

const leave: JSONObject = {
  type: "object",
  properties: {
    days: { type: "integer", minimum: 1, maximum: 60 },
    reason: { type: "string", maxLength: 5 },
    "first.day": { type: "string", format: "date" },
  },
  required: ["days"],
  additionalProperties: false,
};

const said = (schema: JSONObject, data: unknown) => findFaults(schema, data).map((fault) => `${fault.path.join("/")}: ${fault.message}`);

const cases: { line: string; schema: JSONObject; data: unknown; want: string[] }[] = [
  { line: "what fits has no fault", schema: leave, data: { days: 3, reason: "ski" }, want: [] },
  { line: "a missing member is named at its own place", schema: leave, data: {}, want: ["days: This field is required."] },
  { line: "a member without a value is missing", schema: leave, data: { days: undefined }, want: ["days: This field is required."] },
  { line: "a limit is said in numbers", schema: leave, data: { days: 61 }, want: ["days: This must be 60 or less."] },
  { line: "a number that would be rounded", schema: { type: "object", properties: { a: { type: "array", items: { type: "integer" } } } }, data: { a: [1, 9007199254740992] }, want: ["a/1: This number is too large to be stored exactly."] },
  { line: "a wrong type", schema: leave, data: { days: "x" }, want: ["days: This must be a whole number."] },
  { line: "a dot in a name is no step", schema: leave, data: { days: 1, "first.day": "soon" }, want: ["first.day: This must be a date."] },
  { line: "faults stand in the order of the fields", schema: leave, data: { reason: "too long", days: 0 }, want: ["days: This must be 1 or more.", "reason: Enter at most 5 characters."] },
  { line: "an unexpected member", schema: leave, data: { days: 1, x: 1 }, want: ["x: This field is not allowed."] },
  {
    line: "through a reference, into a list",
    schema: { type: "object", properties: { items: { type: "array", items: { $ref: "#/$defs/item" } } }, $defs: { item: { type: "object", properties: { n: { type: "number", exclusiveMinimum: 0 } }, required: ["n"] } } },
    data: { items: [{ n: 1 }, {}, { n: 0 }] },
    want: ["items/1/n: This field is required.", "items/2/n: This must be more than 0."],
  },
  { line: "an empty entry of a list", schema: { type: "array", items: { type: "string" } }, data: [undefined], want: ["0: This field is required."] },
  { line: "a consent", schema: { type: "object", properties: { ok: { type: "boolean", enum: [true] } } }, data: { ok: false }, want: ["ok: This must be checked."] },
  {
    line: "of alternatives, the one that was meant",
    schema: { type: "object", oneOf: [{ properties: { a: { const: 1 }, b: { type: "string" } }, required: ["a", "b", "c"] }, { properties: { a: { const: 2 } }, required: ["a", "d"] }] },
    data: { a: 2 },
    want: ["d: This field is required."],
  },
  { line: "a value that fits no alternative", schema: { type: "object", properties: { x: { oneOf: [{ const: "a" }, { const: "b" }] } } }, data: { x: "c" }, want: ["x: This value is not valid."] },
];

for (const { line, schema, data, want } of cases) {
  test(line, () => assert.deepEqual(said(schema, data), want));
}

test("a part of a schema is asked with the references of the whole", () => {
  const whole: JSONObject = { $defs: { n: { type: "integer" } }, oneOf: [{ $ref: "#/$defs/n" }, { type: "string" }] };
  assert.equal(fits({ $ref: "#/$defs/n" }, 1, whole), true);
  assert.equal(fits({ $ref: "#/$defs/n" }, "x", whole), false);
  assert.equal(fits({ anyOf: [{ $ref: "#/$defs/n" }, { type: "string" }] }, "x", whole), true);
  assert.equal(fits({ type: "string" }, undefined, whole), false);
  const named = { ...whole, $id: "https://forms.example/leave.json" };
  assert.equal(fits({ $ref: "#/$defs/n" }, 1, named), true);
  assert.equal(fits({ $ref: "#/$defs/n" }, "x", named), false);
});

test("a reference to nowhere is an error, not a pass", () => {
  assert.throws(() => findFaults({ $ref: "other.json" }, {}));
  assert.equal(fits({ $ref: "#/$defs/none" }, {}, {}), false);
});
