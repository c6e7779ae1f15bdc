import assert from "node:assert/strict";
import { after, test } from "node:test";
import { amountIn, lineColumns, numberIn } from "../src/schemaform/numbers";
import { i18n, language, speak, t } from "../src/text";
import { de } from "../src/text/de";
import { en } from "../src/text/en";
import { formatAmount, formatDay, formatNumber } from "../src/words";

after(() => speak("en"));

/** Every text with the way to it. */
function texts(part: object, way = ""): [string, string][] {
  return Object.entries(part).flatMap(([key, value]) => (typeof value === "string" ? [[way + key, value] as [string, string]] : texts(value as object, `${way}${key}.`)));
}

/** What stands in a text for something else: {{x}} and <1>. */
const places = (text: string) => [...text.matchAll(/\{\{\w+\}\}|<\/?\d>/g)].map(([place]) => place).toSorted();

test("German is whole: the same texts, with the same places in them", () => {
  const german = new Map(texts(de));
  assert.deepEqual([...german.keys()], texts(en).map(([key]) => key));
  for (const [key, text] of texts(en)) {
    assert.deepEqual(places(german.get(key) ?? ""), places(text), key);
    assert.notEqual(german.get(key), "", key);
  }
});

test("texts, numbers and days change with the language, all at once", async () => {
  assert.equal(t("faults.maxLength", { count: 1 }), "Enter at most 1 character.");
  await speak("de");
  assert.equal(language(), "de");
  assert.equal(i18n.t("form.submit"), "Einreichen");
  assert.equal(formatNumber(1234.5), "1.234,5");
  assert.equal(formatDay("2026-12-24"), "24.12.2026");
  await speak("en");
  assert.equal(formatNumber(1234.5), "1,234.5");
});

test("what people write is markup to nobody", () => {
  assert.equal(t("form.createdBy", { name: "<b>x</b> {{y}} $t(form.submit)" }), "Created by <b>x</b> {{y}} $t(form.submit)");
});

test("numbers are read as the reader's locale writes them", () => {
  assert.equal(numberIn("1,234.5", "en"), 1234.5);
  assert.equal(numberIn("1.234,5", "de"), 1234.5);
  assert.equal(numberIn("0,1", "de"), 0.1);
  assert.equal(numberIn("-3", "de"), -3);
  assert.equal(numberIn("abc", "en"), undefined);
  assert.equal(numberIn("12x", "en"), undefined);
  for (const [text, of, want] of [
    ["1.299", "de-DE", 1299],
    ["1.299,50", "de-DE", 1299.5],
    ["1 299,50", "de-DE", 1299.5],
    ["1299,", "de-DE", 1299],
    ["1.5", "de-DE", 1.5],
    ["1.2995", "de-DE", 1.2995],
    ["1.29.9", "de-DE", undefined],
    ["12.34,5", "de-DE", undefined],
    ["649,90", "en-US", undefined],
    ["1.299,50", "en-US", undefined],
    ["1,2,3", "en-US", undefined],
    ["1,234,567.25", "en-US", 1234567.25],
    ["-1,234", "en-GB", -1234],
    ["1,23,456.7", "en-IN", 123456.7],
    ["1’234.5", "de-CH", 1234.5],
    ["1234.5", "de-CH", 1234.5],
    ["1234,5", "de-AT", 1234.5],
    ["", "de-DE", undefined],
    [".", "en-US", undefined],
  ] as const) {
    assert.equal(numberIn(text, of), want, `${text} in ${of}`);
  }
});

test("amounts are written with their currency, and read with and without it", () => {
  assert.equal(formatAmount(1299.5, "EUR"), "€1,299.50");
  assert.equal(formatAmount(0.125, "USD"), "$0.125", "what is there is shown");
  assert.equal(formatAmount(1299, "JPY"), "¥1,299");
  for (const none of ["", "euros", "<b>"]) {
    assert.equal(formatAmount(1299.5, none), "1,299.5");
  }
  for (const [text, of, currency, want] of [
    ["€1,299.50", "en-US", "EUR", 1299.5],
    ["1.299,50 €", "de-DE", "EUR", 1299.5],
    ["1299,5", "de-DE", "EUR", 1299.5],
    ["EUR 20", "en-US", "EUR", 20],
    ["-€5.00", "en-US", "EUR", -5],
    ["CA$7", "en-US", "CAD", 7],
    ["$7", "en-US", "CAD", 7],
    ["$7", "en-US", "EUR", undefined],
    ["7", "en-US", "euros", 7],
    ["€", "en-US", "EUR", undefined],
    ["12€50", "de-DE", "EUR", undefined],
    ["1.2€34", "en-US", "EUR", undefined],
    ["150", "en-US", "1", 150],
    ["1.50", "en-US", ".", 1.5],
    ["1,50", "de-DE", ",", 1.5],
    ["-5", "en-US", "-", -5],
  ] as const) {
    assert.equal(amountIn(text, of, currency), want, `${text} in ${of}`);
  }
  // What is shown is read as what it is, wherever Intl has other marks for money than for numbers.
  for (const of of ["en-US", "en-GB", "en-DE", "en-NL", "en-AU", "en-IN", "en-ZA", "de-DE", "de-AT", "de-CH", "de-LI"]) {
    for (const currency of ["EUR", "USD", "CHF", "JPY", "KWD", "SEK", "INR", "XAF"]) {
      for (const value of [0, 5, -5, 1.5, 649.9, 1234.5, -1234.5, 1299, 0.126, 1234567.89]) {
        assert.equal(amountIn(formatAmount(value, currency, of), of, currency), value, `${formatAmount(value, currency, of)} in ${of}`);
      }
    }
  }
});

test("a list of small entries is a table, one of large ones is not", () => {
  const list = (properties: object) => lineColumns({ items: { type: "object", properties } }, {}, { items: { price: { "ui:currency": "EUR" } } });
  assert.deepEqual(list({ name: { type: "string" }, price: { type: "number", title: "Unit price" } }), [
    { name: "name", title: "Name", numeric: false, currency: "" },
    { name: "price", title: "Unit price", numeric: true, currency: "EUR" },
  ]);
  assert.equal(list({ name: { type: "string" }, why: { type: "string", maxLength: 500 } }), null);
  assert.equal(list({ name: { type: "string" } }), null);
});
