import assert from "node:assert/strict";
import { test } from "node:test";
import { lastEntry } from "../src/api/past";
import { changesOf } from "../src/instance/changes";
import { resetEntry, wordingOf, wordsOf } from "../src/instance/definitionWords";

test("what changed is as far inside as both documents have the same shape", () => {
  const before = { item: "pen", lines: [{ price: 1 }, { price: 2 }], address: { city: "Bonn", zip: null }, tags: ["a"], gone: false };
  const after = { item: "pen", lines: [{ price: 1 }, { price: 3 }, { price: 4 }], address: { city: "Köln", zip: null }, tags: "a", constructor: { x: 1 } };
  assert.deepEqual(changesOf(before, after), [
    { path: ["lines", "2", "price"], before: 2, after: 3 },
    { path: ["lines", "3"], before: undefined, after: { price: 4 } },
    { path: ["address", "city"], before: "Bonn", after: "Köln" },
    { path: ["tags"], before: ["a"], after: "a" },
    { path: ["constructor"], before: undefined, after: { x: 1 } },
    { path: ["gone"], before: false, after: undefined },
  ]);
  assert.deepEqual(changesOf(before, structuredClone(before)), []);
  assert.deepEqual(changesOf({ a: null, b: [], c: {} }, { a: {}, b: {}, c: {} }), [
    { path: ["a"], before: null, after: {} },
    { path: ["b"], before: [], after: {} },
  ]);
});

test("the entity tag has the number of the last entry", () => {
  assert.deepEqual(['"7"', '"120-gzip"', "", '"0"', 'W/"7"', '"x"', undefined].map(lastEntry), [7, 120, 0, 0, 0, 0, 0]);
});

test("a reset is told from an event of the same name", () => {
  const words = wordsOf(undefined);
  const wording = (data: unknown) => wordingOf({ user: "mary.major", transitionEvent: "reset", data }, words);
  assert.equal(wording({ to: 3, reason: "wrong amount" }), "reset");
  assert.equal(resetEntry({ to: 3, reason: "wrong amount" }), 3);
  assert.equal(wording({ to: "factory" }), "event");
  assert.equal(wording(undefined), "event");
});
