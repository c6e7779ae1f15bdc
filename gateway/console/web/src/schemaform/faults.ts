import { dereference, type OutputUnit, type Schema, validate } from "@cfworker/json-schema";
import type { JSONObject } from "../api/types";
import { t } from "../text";
import { faultWords } from "./faultWords";

// What does not fit a schema, in words for the person who fills in the form.
// The validator interprets the schema; one that compiles it to code would need a
// policy that lets scripts make scripts.

/** One thing that does not fit. */
export interface Fault {
  /** Where in the data: names of members, indexes of items. */
  path: string[];
  message: string;
  keyword: string;
}

type Lookup = ReturnType<typeof dereference>;

const draft = "2020-12";
/** Only a name: nothing is ever loaded from a schema's address. */
const root = new URL("schema://form");

// A schema is prepared once for as long as the page holds it.
const prepared = new WeakMap<object, Lookup>();

function lookupOf(schema: object): Lookup {
  let lookup = prepared.get(schema);
  if (!lookup) {
    lookup = dereference(schema as Schema, Object.create(null) as Lookup, root);
    prepared.set(schema, lookup);
  }
  return lookup;
}

/** Data as it would be sent: members without a value are not there. */
const asSent = (data: unknown): unknown => (data === undefined ? undefined : JSON.parse(JSON.stringify(data)));

/** All faults of the data. Throws when the schema itself cannot be used. */
export function findFaults(schema: JSONObject, data: unknown): Fault[] {
  const lookup = lookupOf(schema);
  const sent = asSent(data) ?? null;
  const result = validate(sent, schema as Schema, draft, lookup, false);
  const faults = choose(result.errors).map((unit) => faultOf(unit, schema, sent, lookup));
  faults.push(...roundedNumbers(sent, []));
  const seen = new Set<string>();
  const order = ["", ...Object.keys((schema.properties ?? {}) as object)];
  const place = (fault: Fault) => order.indexOf(fault.path[0] ?? "");
  // In the order in which the fields stand on the page.
  return faults.toSorted((a, b) => place(a) - place(b)).filter((fault) => {
    const key = `${fault.path.join("/")} ${fault.message}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** Whole numbers that a browser cannot keep: what would be sent is another one. */
function roundedNumbers(data: unknown, path: string[]): Fault[] {
  if (typeof data === "number") {
    const exact = !Number.isInteger(data) || Number.isSafeInteger(data);
    return exact ? [] : [{ path, message: t("faults.rounded"), keyword: "rounded" }];
  }
  if (data === null || typeof data !== "object") {
    return [];
  }
  return Object.entries(data).flatMap(([name, value]) => roundedNumbers(value, [...path, name]));
}

/**
 * Whether data fits a part of a schema. The form library asks this of each
 * alternative of oneOf, with copies of parts: references are looked up in whole.
 */
export function fits(part: unknown, data: unknown, whole: object): boolean {
  if (typeof part === "boolean") {
    return part;
  }
  if (part === null || typeof part !== "object") {
    return false;
  }
  const value = asSent(data);
  if (value === undefined) {
    return Object.keys(part).length === 0;
  }
  try {
    // NB: the part's own places are named apart from those of the whole.
    const lookup = Object.assign(Object.create(null) as Lookup, lookupOf(whole));
    const { $id } = whole as Schema;
    const base = $id === undefined ? root : new URL($id, root);
    dereference(part as Schema, lookup, base, `/part-${partsSeen++}`);
    return validate(value, part as Schema, draft, lookup).valid;
  } catch {
    return false;
  }
}

let partsSeen = 0;

/** Keywords whose own fault only says that there are faults inside. */
const wrappers = new Set(["properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items", "prefixItems", "additionalItems", "unevaluatedItems", "allOf", "$ref", "$dynamicRef", "$recursiveRef", "if", "dependentSchemas"]);

/**
 * Leaves what a person can act on. Of the alternatives of oneOf and anyOf it
 * keeps the one that fits best, which is most likely the one that was meant.
 */
function choose(units: OutputUnit[]): OutputUnit[] {
  const one = units.find((unit) => unit.keyword === "oneOf" || unit.keyword === "anyOf");
  if (one) {
    const inside = `${one.keywordLocation}/`;
    const branches = new Map<string, OutputUnit[]>();
    for (const unit of units) {
      if (unit.keywordLocation.startsWith(inside) && unit.instanceLocation.startsWith(one.instanceLocation)) {
        const branch = unit.keywordLocation.slice(inside.length).split("/", 1)[0] ?? "";
        branches.set(branch, [...(branches.get(branch) ?? []), unit]);
      }
    }
    const best = [...branches.values()].map(choose).toSorted((a, b) => a.length - b.length)[0];
    const dropped = new Set([...branches.values()].flat());
    const rest = units.filter((unit) => unit !== one && !dropped.has(unit));
    const deeper = best?.every((unit) => unit.instanceLocation !== one.instanceLocation || unit.keyword === "required") ?? false;
    return [...choose(rest), ...(best && deeper ? best : [{ ...one, keyword: "alternatives" }])];
  }
  return units.filter((unit) => !wrappers.has(unit.keyword));
}

function faultOf(unit: OutputUnit, schema: JSONObject, data: unknown, lookup: Lookup): Fault {
  const path = pointer(unit.instanceLocation);
  // Named at the field that is missing, not at the object around it.
  if (unit.keyword === "required" || unit.keyword === "dependentRequired") {
    const names = [...unit.error.matchAll(/"((?:[^"\\]|\\.)*)"/g)];
    const name = names[names.length - 1]?.[1];
    if (name !== undefined) {
      path.push(name);
    }
  }
  // An entry of a list that is still empty is sent as null.
  const keyword = unit.keyword === "type" && valueAt(data, path) === null ? "required" : unit.keyword;
  return { path, keyword, message: faultWords(keyword, limitAt(unit.keywordLocation, schema, lookup)) };
}

function valueAt(data: unknown, path: string[]): unknown {
  return path.reduce<unknown>((at, name) => (at !== null && typeof at === "object" ? (at as JSONObject)[name] : undefined), data);
}

/** What the schema demands at a keyword, for example 60 for "maximum". */
function limitAt(location: string, schema: JSONObject, lookup: Lookup): unknown {
  let at: unknown = schema;
  for (const segment of pointer(location)) {
    if (at === null || typeof at !== "object") {
      return undefined;
    }
    if (segment === "$ref") {
      const { __absolute_ref__: absolute, $ref } = at as Schema;
      at = lookup[absolute ?? $ref ?? ""];
    } else {
      at = (at as JSONObject)[segment];
    }
  }
  return at;
}

function pointer(location: string): string[] {
  const segments = location.replace(/^#\/?/, "");
  return segments === "" ? [] : segments.split("/").map((segment) => decodePointer(segment));
}

function decodePointer(segment: string): string {
  const text = segment.replace(/~1/g, "/").replace(/~0/g, "~");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
