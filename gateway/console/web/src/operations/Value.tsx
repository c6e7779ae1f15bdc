import { useTranslation } from "react-i18next";
import { formatMinute, formatNumber } from "../words";

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;
const charactersMax = 120;

const cut = (text: string) => (text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);

/** A value of an instance in a list: always text, and not too much of it. */
export function Value({ value }: { value: unknown }) {
  const { t } = useTranslation();
  switch (typeof value) {
    case "boolean":
      return value ? t("yes") : t("no");
    case "number":
      return formatNumber(value);
    case "string":
      return value === "" ? <span className="quiet">–</span> : instant.test(value) && !Number.isNaN(Date.parse(value)) ? formatMinute(new Date(value)) : cut(value);
    default:
      return value === null || value === undefined ? <span className="quiet">–</span> : <code className="ops-json">{cut(JSON.stringify(value))}</code>;
  }
}
