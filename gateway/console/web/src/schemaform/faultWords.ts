import { count, formatNumber } from "../words";

const typeNames: Record<string, string> = {
  string: "a text",
  number: "a number",
  integer: "a whole number",
  boolean: "yes or no",
  object: "a group of fields",
  array: "a list",
  null: "empty",
};

const formatNames: Record<string, string> = {
  date: "a date",
  "date-time": "a date with a time",
  time: "a time",
  email: "an e-mail address",
  uri: "a web address with its https://",
  uuid: "a UUID",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  hostname: "the name of a host",
};

/**
 * Says what to do about a value that a keyword of JSON Schema does not let pass.
 * limit is what the schema has at the keyword.
 */
export function faultWords(keyword: string, limit: unknown): string {
  const number = typeof limit === "number" ? formatNumber(limit) : String(limit);
  const many = typeof limit === "number" ? limit : 0;
  switch (keyword) {
    case "required":
    case "dependentRequired":
      return "Fill this in.";
    case "type":
      return `This must be ${[limit].flat().map((name) => typeNames[String(name)] ?? String(name)).join(" or ")}.`;
    case "minimum":
      return `This must be ${number} or more.`;
    case "maximum":
      return `This must be ${number} or less.`;
    case "exclusiveMinimum":
      return `This must be more than ${number}.`;
    case "exclusiveMaximum":
      return `This must be less than ${number}.`;
    case "multipleOf":
      return `This must be a multiple of ${number}.`;
    case "minLength":
      return many === 1 ? "Fill this in." : `Write ${count(many, "character", "characters")} or more.`;
    case "maxLength":
      return `Write ${count(many, "character", "characters")} at most.`;
    case "minItems":
      return `Add ${count(many, "entry", "entries")} or more.`;
    case "maxItems":
      return `Keep to ${count(many, "entry", "entries")} at most.`;
    case "uniqueItems":
      return "No two entries may be the same.";
    case "format":
      return `This must be ${formatNames[String(limit)] ?? `of the form “${String(limit)}”`}.`;
    case "pattern":
      return "This does not have the form that is asked for.";
    case "const":
      return limit === true ? "This must be ticked." : `This must be ${JSON.stringify(limit)}.`;
    case "enum":
      return Array.isArray(limit) && limit.length === 1 && limit[0] === true ? "This must be ticked." : "Choose one of what is offered.";
    case "false":
      return "This is not expected here.";
    default:
      return "This does not fit.";
  }
}
