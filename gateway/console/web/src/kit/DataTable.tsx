// NB: the roles are written out, because a browser drops those of a table that is
// laid out as something else.
/* oxlint-disable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role */
import { ArrowDown, ArrowUp } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
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
  /** The title is for those who listen; the cells say it to the others. */
  quietTitle?: boolean;
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
                <span className={column.quietTitle ? "visually-hidden" : undefined}>{column.title}</span>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={rowKey(row)} role="row">
            {columns.map((column) => {
              const inside = column.cell(row);
              return (
                <td key={column.key} role="cell" className={classOf(column, true)}>
                  {column.named && inside !== null && inside !== undefined && inside !== "" && <span className="cell-name">{column.title} </span>}
                  {inside}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const classOf = <T,>({ head, narrow, end }: ColumnOf<T>, isCell: boolean) => [head && isCell ? "cell-head" : "", narrow ? "narrow" : "", end ? "end" : ""].join(" ").trim() || undefined;

interface CursorPagerProps {
  /** Where the page that is shown begins, empty for the first. */
  cursor: string;
  /** Where the next one begins, null when there is none. */
  next: string | null;
  /** How much there is in all, in words. */
  total?: string;
  onTurn: (cursor: string) => void;
}

/** Steps through pages of a list of which only the service knows how long it is. Back goes back. */
export function CursorPager({ cursor, next, total = "", onTurn }: CursorPagerProps) {
  const { t } = useTranslation();
  if (cursor === "" && next === null) {
    return null;
  }
  const turn = (to: string) => {
    onTurn(to);
    window.scrollTo({ top: 0 });
  };
  return (
    <nav className="pager" aria-label={t("list.pages")}>
      <span>{total}</span>
      {cursor !== "" && (
        <Button small onPress={() => turn("")}>
          {t("list.first")}
        </Button>
      )}
      {next !== null && (
        <Button small onPress={() => turn(next)}>
          {t("list.next")}
        </Button>
      )}
    </nav>
  );
}
