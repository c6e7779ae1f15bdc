import { CalendarClock } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Badge } from "../kit/Badge";
import { Button } from "../kit/Button";
import type { ColumnOf } from "../kit/DataTable";
import { Time } from "../kit/Time";
import { language } from "../text";
import { changeSchedule, type Schedule, type ScheduleAction } from "./api";
import { cronWords } from "./cron";
import { Confirm, Listed, useDeed } from "./parts";
import { useSchedules, useWorkflowName } from "./queries";
import { useText } from "./text";

/** What creates instances at times. */
export function SchedulesSection() {
  const t = useText();
  const { t: common } = useTranslation();
  const schedules = useSchedules();
  const workflowName = useWorkflowName();
  const nameOf = (of: Schedule) => `${workflowName(of.workflowId)}: ${of.name}`;
  const { news, deed } = useDeed();
  const [running, setRunning] = useState<Schedule | null>(null);
  const act = (of: Schedule, action: ScheduleAction) => {
    const name = nameOf(of);
    return deed(() => changeSchedule(of, action), t(`schedules.done.${action}`, { name }), t("schedules.failed", { name }));
  };
  const columns: ColumnOf<Schedule>[] = [
    {
      key: "name",
      title: t("schedules.name"),
      head: true,
      cell: (of) => (
        <>
          <span className="ops-strong">{of.name}</span>
          <span className="row-id">{workflowName(of.workflowId)}</span>
          {of.lastError !== "" && <span className="row-text ops-error">{of.lastError}</span>}
        </>
      ),
    },
    {
      key: "when",
      title: t("schedules.when"),
      cell: (of) => (
        <span className="ops-when">
          {cronWords(of.cron, language())}{" "}
          <span className="row-text">
            <code>{of.cron}</code> {of.zone}
          </span>
        </span>
      ),
    },
    {
      key: "state",
      title: t("schedules.state"),
      narrow: true,
      cell: (of) => <Badge tone={of.paused ? "waiting" : of.lastError !== "" ? "bad" : "good"}>{t(of.paused ? "schedules.paused" : of.lastError !== "" ? "schedules.failing" : "schedules.active")}</Badge>,
    },
    { key: "last", title: t("schedules.last"), narrow: true, named: true, cell: (of) => (of.last === null ? <span className="quiet">{t("schedules.never")}</span> : <Time at={of.last} />) },
    { key: "next", title: t("schedules.next"), narrow: true, named: true, cell: (of) => (of.next === null ? <span className="quiet">–</span> : <Time at={of.next} as="due" />) },
    {
      key: "actions",
      title: t("actions"),
      narrow: true,
      cell: (of) => (
        <span className="row-actions">
          <Button small aria-label={t("actionOf", { action: t(of.paused ? "schedules.resume" : "schedules.pause"), name: nameOf(of) })} onPress={() => void act(of, of.paused ? "resume" : "pause")}>
            {t(of.paused ? "schedules.resume" : "schedules.pause")}
          </Button>
          <Button small aria-label={t("actionOf", { action: t("schedules.run"), name: nameOf(of) })} onPress={() => setRunning(of)}>
            {t("schedules.run")}
          </Button>
        </span>
      ),
    },
  ];
  return (
    <>
      {news}
      <Listed
        label={t("section.schedules")}
        query={schedules}
        rows={(list) => list}
        columns={columns}
        rowKey={(of) => `${of.workflowId}/${of.name}`}
        empty={{ sign: <CalendarClock aria-hidden />, title: t("schedules.emptyTitle"), text: t("schedules.emptyText") }}
      />
      {running && (
        <Confirm title={t("schedules.runTitle")} text={t("schedules.runText", { name: nameOf(running) })} yes={t("schedules.run")} no={common("cancel")} onYes={() => act(running, "run")} onClose={() => setRunning(null)} />
      )}
    </>
  );
}
