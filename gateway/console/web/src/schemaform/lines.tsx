import { getUiOptions, type UiSchema } from "@rjsf/utils";
import type { JSONObject } from "../api/types";
import { t } from "../text";
import { formatNumber } from "../words";
import { asObject } from "./layout";
import { type LineColumn, sumOf } from "./numbers";

/** The columns that layout hints want summed: "ui:sums": ["price"]. */
export function sumsOf(uiSchema: UiSchema<JSONObject[]> | undefined): string[] {
  const { sums } = getUiOptions(uiSchema) as { sums?: unknown };
  return Array.isArray(sums) ? sums.filter((name): name is string => typeof name === "string") : [];
}

/** The totals below a list. */
export function Sums({ names, columns, rows }: { names: string[]; columns: LineColumn[]; rows: JSONObject[] }) {
  const shown = columns.filter((column) => column.numeric && names.includes(column.name));
  if (shown.length === 0 || rows.length === 0) {
    return null;
  }
  return (
    <p className="sums">
      {shown.map((column) => (
        <span key={column.name}>
          {shown.length > 1 ? column.title : t("field.sum")} <strong>{formatNumber(sumOf(rows.map((row) => asObject(row)[column.name])))}</strong>
        </span>
      ))}
    </p>
  );
}
