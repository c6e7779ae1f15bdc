import { t } from "../text";
import { formatDay, formatMinute, formatNumber } from "../words";

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;
const calendarDay = /^\d{4}-\d{2}-\d{2}$/;

/** A value of an instance as a text for people; empty for nothing. */
export function valueText(value: unknown): string {
  switch (typeof value) {
    case "boolean":
      return value ? t("yes") : t("no");
    case "number":
      return formatNumber(value);
    case "string":
      if (calendarDay.test(value)) {
        return formatDay(value);
      }
      return instant.test(value) && !Number.isNaN(Date.parse(value)) ? formatMinute(new Date(value)) : value;
    default:
      return value === null || value === undefined ? "" : JSON.stringify(value);
  }
}

/** A value of an instance, always as text. */
export function Value({ value }: { value: unknown }) {
  const text = valueText(value);
  return text === "" ? <span className="quiet">–</span> : <span className={typeof value === "number" ? "text number" : "text"}>{text}</span>;
}
