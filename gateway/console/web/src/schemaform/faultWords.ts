import { i18n, t } from "../text";
import { formatNumber } from "../words";

/** A text below a key that comes from data, or "" when there is none. */
function known(group: "types" | "formats", name: string): string {
  const key = `faults.${group}.${name}`;
  return i18n.exists(key) ? String(i18n.t(key as never)) : "";
}

/**
 * The message for a value that violates a keyword of JSON Schema. limit is the
 * keyword's value in the schema.
 */
export function faultWords(keyword: string, limit: unknown): string {
  const count = typeof limit === "number" ? limit : 0;
  switch (keyword) {
    case "required":
    case "dependentRequired":
      return t("faults.required");
    case "type":
      return t("faults.type", { type: [limit].flat().map((name) => known("types", String(name)) || String(name)).join(t("faults.or")) });
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
    case "multipleOf":
      return t(`faults.${keyword}`, { limit: typeof limit === "number" ? formatNumber(limit) : String(limit) });
    case "minLength":
      return count === 1 ? t("faults.required") : t("faults.minLength", { count });
    case "maxLength":
    case "minItems":
    case "maxItems":
      return t(`faults.${keyword}`, { count });
    case "format":
      return t("faults.format", { format: known("formats", String(limit)) || t("faults.formatNamed", { format: String(limit) }) });
    case "uniqueItems":
    case "pattern":
      return t(`faults.${keyword}`);
    case "const":
      return limit === true ? t("faults.checked") : t("faults.const", { limit: JSON.stringify(limit) });
    case "enum":
      return Array.isArray(limit) && limit.length === 1 && limit[0] === true ? t("faults.checked") : t("faults.enum");
    case "false":
      return t("faults.notAllowed");
    default:
      return t("faults.invalid");
  }
}
