import { NumberParser } from "@internationalized/number";
import type { JSONObject } from "../api/types";
import { asObject, currencyOf, longText } from "./layout";
import { currencySigns } from "../words";
import { resolved, titleOf } from "./titles";

// Numbers as people write them, and lists of them: a list of small objects is a
// table, one line an entry, the names on top.

/**
 * A number as people write it; undefined when the text is none. NB: what separates
 * thousands in one language separates decimals in another. So it counts only where it
 * stands before three digits, and never is passed over: "649,90" is no English number.
 */
export function numberIn(text: string, of: string): number | undefined {
  const plain = text.trim().replace(/[\s\u00a0\u202f]/g, " ").replace(/^\u2212/, "-");
  if (/[^\x20-\x7e\u2019]/.test(plain)) {
    const value = new NumberParser(of, { style: "decimal", maximumFractionDigits: 20 }).parse(plain); // other digits than ours
    return Number.isFinite(value) ? value : undefined;
  }
  const { group, decimal, whole } = marksOf(of);
  const [, sign, digits, fraction] = new RegExp(`^([-+]?)(\\d+|${whole})(?:${decimal}(\\d*))?$`).exec(plain) ?? [];
  if (digits !== undefined) {
    return Number(`${sign}${digits.replace(/\D/g, "")}.${fraction || "0"}`);
  }
  // A point is understood everywhere, where it cannot be meant otherwise.
  return group !== "," && /^[-+]?\d+\.(\d{1,2}|\d{4,})$/.test(plain) ? Number(plain) : undefined;
}

/** A number as people write it, with or without the sign of its currency in front or behind. */
export function amountIn(text: string, of: string, currency: string): number | undefined {
  let rest = text.trim();
  const minus = /^[-+\u2212]/.exec(rest)?.[0] ?? "";
  rest = rest.slice(minus.length).trim();
  for (const sign of currencySigns(currency, of)) {
    if (rest.startsWith(sign) || rest.endsWith(sign)) {
      rest = (rest.startsWith(sign) ? rest.slice(sign.length) : rest.slice(0, -sign.length)).trim();
      break;
    }
  }
  return numberIn(minus + rest, of);
}

interface Marks {
  group: string;
  /** The pattern of what separates decimals. */
  decimal: string;
  /** The pattern of whole numbers with marks between their thousands. */
  whole: string;
}

function marksOf(of: string): Marks {
  const parts = new Intl.NumberFormat(of, { useGrouping: true, numberingSystem: "latn" }).formatToParts(12_345_678.9);
  const markOf = (type: string) => parts.find((part) => part.type === type)?.value ?? "";
  const group = markOf("group");
  const separator = group === "." ? "[. ]" : group === "," ? "[,]" : "[ '\u2019]";
  // In India thousands are followed by hundreds of thousands: 1,23,45,678.
  const groups = parts.filter((part) => part.type === "integer").map((part) => part.value.length);
  const middle = groups[1] === 2 ? `(?:${separator}\\d{2})*${separator}\\d{3}` : `(?:${separator}\\d{3})+`;
  return { group, decimal: markOf("decimal") === "," ? "," : "\\.", whole: `\\d{1,3}${middle}` };
}

export interface LineColumn {
  name: string;
  title: string;
  numeric: boolean;
  /** That of amounts; "" for what is none. */
  currency: string;
}

/** From this many columns on a line would be too narrow. */
const columnsMax = 5;

/** The columns of a list's entries, or null when they are more than a line each. ui are the hints for the list. */
export function lineColumns(schema: object, whole: object, ui?: unknown): LineColumn[] | null {
  const item = resolved((schema as JSONObject).items, whole as JSONObject);
  const parts = Object.entries(asObject(item.properties)).map(([name, part]) => [name, resolved(part, whole as JSONObject)] as const);
  const small = (part: JSONObject) => ["string", "number", "integer"].includes(String(part.type)) && !(typeof part.maxLength === "number" && part.maxLength >= longText);
  if (item.type !== "object" || parts.length < 2 || parts.length > columnsMax || !parts.every(([, part]) => small(part))) {
    return null;
  }
  const hints = asObject(asObject(ui).items);
  return parts.map(([name, part]) => ({ name, title: titleOf(name, part), numeric: part.type !== "string", currency: currencyOf(hints[name]) }));
}
