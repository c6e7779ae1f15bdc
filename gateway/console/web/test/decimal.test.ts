import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { productOf, sumOf } from "../src/decimal";

interface Case<T> {
  of: T[];
  is: number;
}

// The table of the server's arithmetic: .ci/console puts it here.
const table = existsSync("decimal.json") ? "decimal.json" : "../../../statemachine/decimal/testdata/cases.json";
const cases = JSON.parse(readFileSync(table, "utf8")) as { sum: Case<number>[]; product: Case<number>[]; lines: Case<number[]>[] };

test("sums and products are the server's", () => {
  for (const { of, is } of cases.sum) {
    assert.equal(sumOf(of), is, `the sum of ${of.join(", ")}`);
  }
  for (const { of, is } of cases.product) {
    assert.equal(productOf(of), is, `the product of ${of.join(", ")}`);
  }
  for (const { of, is } of cases.lines) {
    assert.equal(sumOf(of.map(productOf)), is, `the sum of the products of ${of.join("; ")}`);
  }
  assert.ok(cases.sum.length > 10 && cases.product.length > 10 && cases.lines.length > 0);
});

test("what is no number counts nothing in a sum, and makes no product", () => {
  assert.equal(sumOf([0.1, 0.2, "x", undefined, Number.NaN]), 0.3);
  assert.equal(productOf([3, "1"]), undefined);
  assert.equal(sumOf([productOf([2, 1.15]), productOf([1, undefined])]), 2.3);
});
