import { Archive } from "lucide-react";
import { Badge } from "../kit/Badge";
import type { ColumnOf } from "../kit/DataTable";
import { Time } from "../kit/Time";
import { durationText } from "../words";
import type { Backup } from "./api";
import { sizeText } from "./HealthSection";
import { Listed } from "./parts";
import { useBackups } from "./queries";
import { useText } from "./text";

/** A backup is late when two more should have followed it. */
const isLate = ({ moment, everySeconds }: Backup) => moment !== null && Date.now() - Date.parse(moment) > 2000 * everySeconds;

/** Where the server backs up to, and what is there. */
export function BackupsSection() {
  const t = useText();
  const columns: ColumnOf<Backup>[] = [
    {
      key: "to",
      title: t("backups.to"),
      head: true,
      cell: (of) => (
        <>
          <span className="ops-strong ops-code">{of.to}</span>
          {of.error !== undefined && <span className="row-text ops-error">{of.error}</span>}
        </>
      ),
    },
    {
      key: "state",
      title: t("outbox.state"),
      narrow: true,
      cell: (of) => {
        const [tone, word] = of.error !== undefined ? (["bad", "failing"] as const) : of.moment === null ? (["waiting", "first"] as const) : isLate(of) ? (["waiting", "late"] as const) : (["good", "current"] as const);
        return <Badge tone={tone}>{t(`backups.states.${word}`)}</Badge>;
      },
    },
    { key: "last", title: t("backups.last"), narrow: true, named: true, cell: (of) => (of.moment === null ? <span className="quiet">{t("schedules.never")}</span> : <Time at={of.moment} />) },
    { key: "size", title: t("health.size"), narrow: true, named: true, end: true, cell: (of) => (of.bytes === null ? null : sizeText(of.bytes, t)) },
    { key: "every", title: t("backups.every"), narrow: true, named: true, cell: (of) => durationText(of.everySeconds) },
    { key: "keep", title: t("backups.keep"), narrow: true, named: true, cell: (of) => (of.keepSeconds === 0 ? t("backups.forGood") : durationText(of.keepSeconds)) },
  ];
  return (
    <>
      <Listed label={t("section.backups")} query={useBackups()} rows={(list) => list} columns={columns} rowKey={({ to }) => to} empty={{ sign: <Archive aria-hidden />, title: t("backups.emptyTitle"), text: t("backups.emptyText") }} />
      <p className="quiet ops-after">{t("backups.drill")}</p>
    </>
  );
}
