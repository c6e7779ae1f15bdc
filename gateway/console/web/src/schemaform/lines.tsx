import type { JSONObject } from "../api/types";
import { productOf, sumOf } from "../decimal";
import { t } from "../text";
import { formatAmount } from "../words";
import { asObject, hintOf } from "./layout";
import type { LineColumn } from "./numbers";

/** The columns, or products of columns, that layout hints want summed: "ui:sums": ["weight", "quantity * price"]. */
export function sumsOf(ui: unknown): string[] {
  const sums = hintOf(ui, "sums");
  return Array.isArray(sums) ? sums.filter((name): name is string => typeof name === "string") : [];
}

/** The totals below a list. */
export function Sums({ names, columns, rows }: { names: string[]; columns: LineColumn[]; rows: JSONObject[] }) {
  const numbers = new Map(columns.filter((column) => column.numeric).map((column) => [column.name, column]));
  const shown = names
    .map((name) => ({ name, factors: name.split("*").map((factor) => factor.trim()) }))
    .filter(({ factors }) => factors.every((factor) => numbers.has(factor)));
  if (shown.length === 0 || rows.length === 0) {
    return null;
  }
  return (
    <p className="sums">
      {shown.map(({ name, factors }) => (
        <span key={name}>
          {shown.length > 1 ? factors.map((factor) => numbers.get(factor)?.title).join(" × ") : t("field.sum")}{" "}
          <strong>
            {formatAmount(
              sumOf(rows.map((row) => productOf(factors.map((factor) => asObject(row)[factor])))),
              factors.map((factor) => numbers.get(factor)?.currency ?? "").find((currency) => currency !== "") ?? "",
            )}
          </strong>
        </span>
      ))}
    </p>
  );
}
