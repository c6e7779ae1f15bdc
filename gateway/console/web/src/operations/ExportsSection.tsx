import { Upload } from "lucide-react";
import { Badge } from "../kit/Badge";
import type { ColumnOf } from "../kit/DataTable";
import { Time } from "../kit/Time";
import { durationText, formatNumber } from "../words";
import type { Export } from "./api";
import { Listed } from "./parts";
import { useExports, useWorkflowName } from "./queries";
import { useText } from "./text";

/** How far the exports are. */
export function ExportsSection() {
  const t = useText();
  const nameOf = useWorkflowName();
  const columns: ColumnOf<Export>[] = [
    {
      key: "name",
      title: t("exports.name"),
      head: true,
      cell: (of) => (
        <>
          <span className="ops-strong">{of.name}</span>
          <span className="row-text ops-code">{of.to}</span>
          <span className="row-text">{of.workflows.length === 0 ? t("timers.allWorkflows") : of.workflows.map(nameOf).join(", ")}</span>
          {of.error !== undefined && <span className="row-text ops-error">{of.error}</span>}
        </>
      ),
    },
    { key: "state", title: t("outbox.state"), narrow: true, cell: (of) => <Badge tone={of.error === undefined ? "good" : "bad"}>{t(of.error === undefined ? "exports.running" : "exports.failing")}</Badge> },
    { key: "lag", title: t("exports.lag"), narrow: true, named: true, end: true, cell: (of) => durationText(of.lagSeconds) },
    { key: "position", title: t("exports.position"), narrow: true, named: true, cell: (of) => (of.position === null ? <span className="quiet">–</span> : <Time at={of.position} />) },
    { key: "rows", title: t("exports.rows"), narrow: true, named: true, end: true, cell: (of) => formatNumber(of.rows) },
    { key: "gaps", title: t("exports.gaps"), narrow: true, named: true, end: true, cell: (of) => <span className={of.gaps > 0 ? "overdue" : undefined}>{formatNumber(of.gaps)}</span> },
  ];
  return <Listed label={t("section.exports")} query={useExports()} rows={(list) => list} columns={columns} rowKey={({ name }) => name} empty={{ sign: <Upload aria-hidden />, title: t("exports.emptyTitle"), text: t("exports.emptyText") }} />;
}
