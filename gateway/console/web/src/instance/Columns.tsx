import { useTranslation } from "react-i18next";
import type { Summary } from "../api/tasks";
import { formatMinute, formatNumber } from "../words";

/** The columns that the definition names, as names and values. */
export function Columns({ columns }: { columns: Summary["columns"] }) {
  const { t } = useTranslation();
  if (columns.length === 0) {
    return <p className="quiet">{t("instance.noData")}</p>;
  }
  return (
    <dl className="facts">
      {columns.map((column) => (
        <div key={column.path} className="fact">
          <dt>{column.label}</dt>
          <dd>
            <Value value={column.value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;

function Value({ value }: { value: unknown }) {
  const { t } = useTranslation();
  switch (typeof value) {
    case "boolean":
      return value ? t("yes") : t("no");
    case "number":
      return formatNumber(value);
    case "string":
      return value === "" ? <span className="quiet">–</span> : instant.test(value) && !Number.isNaN(Date.parse(value)) ? formatMinute(new Date(value)) : <span className="text">{value}</span>;
    default:
      return value === null || value === undefined ? <span className="quiet">–</span> : <span className="text">{JSON.stringify(value)}</span>;
  }
}
