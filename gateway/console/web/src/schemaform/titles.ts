import type { JSONObject } from "../api/types";
import { language } from "../text";
import { readable } from "../words";
import { asObject } from "./layout";

/** Follows a reference inside the same schema. */
export function resolved(part: unknown, whole: JSONObject): JSONObject {
  let at = asObject(part);
  // NB: bounded, as a schema may refer to itself.
  for (let steps = 0; typeof at.$ref === "string" && at.$ref.startsWith("#") && steps < 16; steps++) {
    const { $ref, ...beside } = at;
    let target: unknown = whole;
    for (const segment of String($ref).slice(1).split("/").filter((s) => s !== "")) {
      target = asObject(target)[segment.replace(/~1/g, "/").replace(/~0/g, "~")];
    }
    at = { ...asObject(target), ...beside };
  }
  return at;
}

/** What a member of an object is called: its title, or its name made readable. */
export function titleOf(name: string, part: JSONObject): string {
  return typeof part.title === "string" && part.title !== "" ? part.title : readable(name);
}

/** In English the name of one entry of a list: "Items" are made of an "Item". */
export const oneOf = (name: string): string => (language() === "en" ? name.replace(/ies$/, "y").replace(/([^s])s$/, "$1") : name);

/** The names of the fields on the way to a place of the data: ["Item 2", "Price"]. */
export function titlesAt(schema: JSONObject, path: string[]): string[] {
  let at = resolved(schema, schema);
  const titles: string[] = [];
  for (const name of path) {
    if (at.type === "array" || at.items !== undefined) {
      titles.push(`${oneOf(titles.pop() ?? "")} ${Number(name) + 1}`.trim());
      at = resolved(at.items, schema);
    } else {
      at = resolved(asObject(at.properties)[name], schema);
      titles.push(titleOf(name, at));
    }
  }
  return titles;
}
