import { useTranslation } from "react-i18next";
import type { Summary } from "../api/tasks";
import { Value } from "../kit/Value";

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
