import { NumberParser } from "@internationalized/number";
import type { JSONObject } from "../api/types";
import { asObject, longText } from "./layout";
import { resolved, titleOf } from "./titles";

// Numbers as people write them, and lists of them: a list of small objects is a
// table, one line an entry, the names on top.

/** A number as people write it; undefined when the text is none. */
export function numberIn(text: string, of: string): number | undefined {
  const plain = text.trim().replace(/\s/g, " ");
  const value = new NumberParser(of, { style: "decimal", maximumFractionDigits: 20 }).parse(plain);
  if (Number.isFinite(value)) {
    return value;
  }
  return /^-?\d+(\.\d+)?$/.test(plain) ? Number(plain) : undefined;
}

export interface LineColumn {
  name: string;
  title: string;
  numeric: boolean;
}

/** From this many columns on a line would be too narrow. */
const columnsMax = 5;

/** The columns of a list's entries, or null when they are more than a line each. */
export function lineColumns(schema: object, whole: object): LineColumn[] | null {
  const item = resolved((schema as JSONObject).items, whole as JSONObject);
  const parts = Object.entries(asObject(item.properties)).map(([name, part]) => [name, resolved(part, whole as JSONObject)] as const);
  const small = (part: JSONObject) => ["string", "number", "integer"].includes(String(part.type)) && !(typeof part.maxLength === "number" && part.maxLength >= longText);
  if (item.type !== "object" || parts.length < 2 || parts.length > columnsMax || !parts.every(([, part]) => small(part))) {
    return null;
  }
  return parts.map(([name, part]) => ({ name, title: titleOf(name, part), numeric: part.type !== "string" }));
}

/** Adds numbers as they are written: 0.1 and 0.2 are 0.3. */
export function sumOf(values: unknown[]): number {
  const numbers = values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  const places = Math.max(0, ...numbers.map((value) => (/\.(\d+)$/.exec(String(value))?.[1] ?? "").length));
  return Number(numbers.reduce((sum, value) => sum + value, 0).toFixed(Math.min(places, 20)));
}
