import type { JSONObject } from "../api/types";

// The layout hints that the form library is given: the template's own, and
// better widgets where a template says nothing.

/**
 * The schema as the form library gets it. A box that must be ticked is said with
 * enum in place of const: a const is filled in by the library, and a consent is
 * the person's to give.
 */
export function renderable(schema: JSONObject): JSONObject {
  return replaceConsents(schema) as JSONObject;
}

function replaceConsents(part: unknown): unknown {
  if (Array.isArray(part)) {
    return part.map(replaceConsents);
  }
  if (part === null || typeof part !== "object") {
    return part;
  }
  const copy = Object.fromEntries(Object.entries(part).map(([name, inside]) => [name, replaceConsents(inside)]));
  if (copy.type === "boolean" && copy.const === true) {
    delete copy.const;
    copy.enum = [true];
  }
  return copy;
}

/** From this length on a text gets several lines. */
export const longText = 256;

export function layoutOf(schema: JSONObject, ui: JSONObject | undefined): JSONObject {
  const layout: JSONObject = { ...asObject(ui) };
  for (const [name, part] of Object.entries(asObject(schema.properties))) {
    const own = asObject(layout[name]);
    const property = asObject(part);
    if (property.type === "object") {
      layout[name] = layoutOf(property, own);
    } else if (property.type === "array" && asObject(property.items).type === "object") {
      layout[name] = { ...own, items: layoutOf(asObject(property.items), asObject(own.items)) };
    } else if (wantsLines(name, property) && !hasWidget(own)) {
      layout[name] = { ...own, "ui:widget": "textarea" };
    }
  }
  return layout;
}

/** Fields that people explain themselves in, as far as their names say so. */
export const explaining = /comment|reason|remark|explanation|^notes?$/i;

const wantsLines = (name: string, property: JSONObject) =>
  property.type === "string" &&
  (typeof property.maxLength === "number" ? property.maxLength >= longText : explaining.test(name)) &&
  property.format === undefined &&
  property.enum === undefined &&
  property.oneOf === undefined;

/** The currency that layout hints give to a number: "ui:currency": "EUR"; "" without one. */
export function currencyOf(ui: unknown): string {
  const currency = hintOf(ui, "currency");
  return typeof currency === "string" ? currency : "";
}

/** A layout hint, which stands by itself or among the options. */
export const hintOf = (ui: unknown, name: string) => asObject(ui)[`ui:${name}`] ?? asObject(asObject(ui)["ui:options"])[name];

const hasWidget = (ui: JSONObject) => ui["ui:widget"] !== undefined || asObject(ui["ui:options"]).widget !== undefined;

export const asObject = (value: unknown): JSONObject =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as JSONObject) : {};
