import { count, formatNumber } from "../words";

const typeNames: Record<string, string> = {
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "yes or no",
  object: "a group of fields",
  array: "a list",
  null: "empty",
};

const formatNames: Record<string, string> = {
  date: "a date",
  "date-time": "a date and time",
  time: "a time",
  email: "an e-mail address",
  uri: "a web address that starts with https://",
  uuid: "a UUID",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  hostname: "a host name",
};

/**
 * The message for a value that violates a keyword of JSON Schema. limit is the
 * keyword's value in the schema.
 */
export function faultWords(keyword: string, limit: unknown): string {
  const number = typeof limit === "number" ? formatNumber(limit) : String(limit);
  const many = typeof limit === "number" ? limit : 0;
  switch (keyword) {
    case "required":
    case "dependentRequired":
      return "This field is required.";
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
      return many === 1 ? "This field is required." : `Enter at least ${count(many, "character", "characters")}.`;
    case "maxLength":
      return `Enter at most ${count(many, "character", "characters")}.`;
    case "minItems":
      return `Add at least ${count(many, "entry", "entries")}.`;
    case "maxItems":
      return `Keep at most ${count(many, "entry", "entries")}.`;
    case "uniqueItems":
      return "Entries must be different.";
    case "format":
      return `This must be ${formatNames[String(limit)] ?? `in the format “${String(limit)}”`}.`;
    case "pattern":
      return "This does not have the required format.";
    case "const":
      return limit === true ? "This must be checked." : `This must be ${JSON.stringify(limit)}.`;
    case "enum":
      return Array.isArray(limit) && limit.length === 1 && limit[0] === true ? "This must be checked." : "Choose one of the options.";
    case "false":
      return "This field is not allowed.";
    default:
      return "This value is not valid.";
  }
}
