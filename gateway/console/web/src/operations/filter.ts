// Rows of a filter builder, and the filter that they make (gateway/INTERFACE.md,
// "Filter"). The text of the filter is what counts: rows are made of it where it
// can be said in rows. Pure.

export const operators = ["is", "isNot", "above", "atLeast", "below", "atMost", "contains", "begins", "oneOf", "there", "notThere"] as const;
export type Operator = (typeof operators)[number];

export interface Row {
  path: string;
  operator: Operator;
  /** As it is typed: see valueOf. */
  value: string;
}

/** Whether an operator is followed by a value. */
export const takesValue = (operator: Operator) => operator !== "there" && operator !== "notThere";

/** The path of the state where an instance stands. */
export const statePath = "states.nodeId";

/** What a typed value means: a number, true, false and null are themselves, "…" and the rest are text. */
export function valueOf(typed: string): unknown {
  const text = typed.trim();
  if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) || ["true", "false", "null"].includes(text) || /^"(?:[^"\\]|\\.)*"$/.test(text)) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  }
  return text;
}

/** The other way round; undefined for what cannot be typed in one field. */
export function typedOf(value: unknown): string | undefined {
  if (typeof value === "string") {
    return valueOf(value) === value && value.trim() === value && value !== "" ? value : JSON.stringify(value);
  }
  return value === null || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)) ? String(value) : undefined;
}

const literal = (text: string) => text.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");
const unescaped = (pattern: string) => (/^(?:[^\\^$.|?*+()[\]{}]|\\[\\^$.|?*+()[\]{}])*$/.test(pattern) ? pattern.replace(/\\(.)/g, "$1") : undefined);

/** "a, b" with quotes where a text has a comma. */
function splitList(typed: string): string[] {
  return [...typed.matchAll(/\s*("(?:[^"\\]|\\.)*"|[^,]+)\s*(?:,|$)/g)].map(([, part]) => (part ?? "").trim()).filter((part) => part !== "");
}

const comparisons: Partial<Record<Operator, string>> = { isNot: "$ne", above: "$gt", atLeast: "$gte", below: "$lt", atMost: "$lte" };

function conditionOf({ operator, value }: Row): unknown {
  switch (operator) {
    case "is":
      return valueOf(value);
    case "contains":
      return { $regex: literal(value.trim()), $options: "i" };
    case "begins":
      return { $regex: `^${literal(value.trim())}` };
    case "oneOf":
      return { $in: splitList(value).map(valueOf) };
    case "there":
      return { $exists: true };
    case "notThere":
      return { $exists: false };
    default:
      return { [comparisons[operator] ?? "$eq"]: valueOf(value) };
  }
}

/** A row counts once it has a path, and a value where it needs one. */
export const isWhole = (row: Row) => row.path.trim() !== "" && (!takesValue(row.operator) || row.value.trim() !== "");

/** The filter of rows that must all hold, "" when there is none. */
export function filterOf(rows: readonly Row[]): string {
  const whole = rows.filter(isWhole).map((row) => ({ [row.path.trim()]: conditionOf(row) }));
  const [first] = whole;
  if (!first) {
    return "";
  }
  const paths = whole.flatMap(Object.keys);
  return JSON.stringify(whole.length === 1 ? first : new Set(paths).size === paths.length ? Object.assign({}, ...whole) : { $and: whole });
}

/** The rows of a filter, null when rows cannot say it. */
export function rowsOf(filter: string): Row[] | null {
  if (filter.trim() === "") {
    return [];
  }
  const parsed = objectOf(filter);
  return parsed === null ? null : membersOf(parsed);
}

function membersOf(filter: Record<string, unknown>): Row[] | null {
  const rows: Row[] = [];
  for (const [path, condition] of Object.entries(filter)) {
    const own = path === "$and" && Array.isArray(condition) ? inAnd(condition) : rowOf(path, condition);
    if (own === null) {
      return null;
    }
    rows.push(...own);
  }
  return rows;
}

function inAnd(parts: unknown[]): Row[] | null {
  const rows = parts.map((part) => (isObject(part) && !Object.hasOwn(part, "$and") ? membersOf(part) : null));
  return rows.includes(null) ? null : rows.flatMap((own) => own ?? []);
}

function rowOf(path: string, condition: unknown): Row[] | null {
  if (path.startsWith("$")) {
    return null;
  }
  const row = (operator: Operator, value: string | undefined): Row[] | null => (value === undefined ? null : [{ path, operator, value }]);
  if (!isObject(condition)) {
    return row("is", typedOf(condition));
  }
  const keys = Object.keys(condition).toSorted().join(" ");
  const pattern = condition["$regex"];
  if (typeof pattern === "string") {
    const begins = pattern.startsWith("^") && keys === "$regex";
    const contains = keys === "$options $regex" && condition["$options"] === "i";
    return begins ? row("begins", unescaped(pattern.slice(1))) : contains ? row("contains", unescaped(pattern)) : null;
  }
  if (keys === "$exists") {
    return typeof condition[keys] === "boolean" ? row(condition[keys] ? "there" : "notThere", "") : null;
  }
  if (keys === "$in") {
    const list = condition[keys];
    const typed = Array.isArray(list) ? list.map((value) => (typeof value === "string" && value.includes(",") ? JSON.stringify(value) : typedOf(value))) : [undefined];
    return row("oneOf", typed.includes(undefined) || typed.length === 0 ? undefined : typed.join(", "));
  }
  const comparison = operators.find((operator) => comparisons[operator] === keys);
  return keys === "$eq" ? row("is", typedOf(condition["$eq"])) : comparison ? row(comparison, typedOf(condition[keys])) : null;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** A filter is the text of a JSON object; null for any other text. */
export function objectOf(text: string): Record<string, unknown> | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

/** The value at a dotted path, undefined when nothing is there. */
export function valueAt(of: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined), of);
}
