// NB: the roles are written out, because a browser drops those of a table that is
// laid out as something else.
/* oxlint-disable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role */
import { ArrowDown, ArrowUp, ChevronLeft, ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { formatNumber } from "../words";
import { Button } from "./Button";

export interface ColumnOf<T> {
  key: string;
  title: string;
  /** The list can be sorted by it. */
  sorts?: boolean;
  /** The head of the row; it spans the line on a phone. */
  head?: boolean;
  /** Says what the cell is on a phone, where there are no column heads. */
  named?: boolean;
  /** Takes no more room than it needs. */
  narrow?: boolean;
  /** Numbers, which stand at the end of the cell. */
  end?: boolean;
  cell: (row: T) => ReactNode;
}

interface DataTableProps<T> {
  label: string;
  columns: ColumnOf<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  /** "due", or "-due" for the other way. */
  sort?: string;
  onSort?: (sort: string) => void;
  stale?: boolean;
}

/** A dense table, whose rows become cards on a phone. */
export function DataTable<T>({ label, columns, rows, rowKey, sort = "", onSort, stale = false }: DataTableProps<T>) {
  const by = sort.replace(/^-/, "");
  const falling = sort.startsWith("-");
  return (
    <table className={stale ? "table table-stale" : "table"} role="table" aria-label={label} aria-busy={stale || undefined}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.key} role="columnheader" scope="col" className={classOf(column, false)} aria-sort={by === column.key ? (falling ? "descending" : "ascending") : undefined}>
              {column.sorts && onSort ? (
                <button type="button" className="sorter" onClick={() => onSort(by === column.key && !falling ? `-${column.key}` : column.key)}>
                  {column.title}
                  {by === column.key && (falling ? <ArrowDown aria-hidden /> : <ArrowUp aria-hidden />)}
                </button>
              ) : (
                column.title
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={rowKey(row)} role="row">
            {columns.map((column) => (
              <td key={column.key} role="cell" className={classOf(column, true)}>
                {column.named && <span className="cell-name">{column.title} </span>}
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const classOf = <T,>({ head, narrow, end }: ColumnOf<T>, isCell: boolean) => [head && isCell ? "cell-head" : "", narrow ? "narrow" : "", end ? "end" : ""].join(" ").trim() || undefined;

interface PagerProps {
  page: number;
  size: number;
  total: number;
  onPage: (page: number) => void;
}

/** Steps through pages of a list; the first is 1. */
export function Pager({ page, size, total, onPage }: PagerProps) {
  const { t } = useTranslation();
  if (total <= size) {
    return null;
  }
  const from = (page - 1) * size + 1;
  return (
    <nav className="pager" aria-label={t("list.pages")}>
      <span>{t("list.range", { from: formatNumber(from), to: formatNumber(Math.min(total, from + size - 1)), total: formatNumber(total) })}</span>
      <Button small round aria-label={t("list.previous")} isDisabled={page <= 1} onPress={() => onPage(page - 1)}>
        <ChevronLeft aria-hidden />
      </Button>
      <Button small round aria-label={t("list.next")} isDisabled={from + size > total} onPress={() => onPage(page + 1)}>
        <ChevronRight aria-hidden />
      </Button>
    </nav>
  );
}
