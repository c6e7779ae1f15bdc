import { useQueryClient } from "@tanstack/react-query";
import { AlarmClock, CalendarClock, CircleCheck, FileCode2, ListTodo, type LucideIcon, Send, TriangleAlert } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { Task } from "../api/tasks";
import { Button } from "../kit/Button";
import { type ColumnOf, DataTable } from "../kit/DataTable";
import { Empty, LoadFault, Notice } from "../kit/Notice";
import { Time } from "../kit/Time";
import { Link } from "../navigate";
import { formatNumber } from "../words";
import { inspectPath, pathOf } from "./address";
import { changeDelivery, changeIncident, type Delivery, type Incident, loadIncidents, loadOutbox, pageSize } from "./api";
import { allIds, type Cause, failedSchedules, grouped, lateTimers, overdueTasks, type Stuck, stuckDeliveries, stuckIncidents } from "./attention";
import { LastHour } from "./LastHour";
import { candidatesText, eventName, incidentName } from "./names";
import { deliveryName } from "./OutboxSection";
import { Loaded, reasonFor, statusOf, useNews } from "./parts";
import { operationsKey, useEveryTask, useIncidents, useOutbox, useSchedules, useTimers, useWords, useWorkflowName, useWorkflows } from "./queries";
import { type Translate, useText } from "./text";

const signs: Record<Cause, LucideIcon> = { incident: TriangleAlert, expression: FileCode2, delivery: Send, timer: AlarmClock, task: ListTodo, schedule: CalendarClock };

/** Where all things of a cause are listed. */
const sectionOf = { incident: "incidents", expression: "incidents", delivery: "outbox", timer: "timers", task: "tasks", schedule: "schedules" } as const;

/** A group that is retried, and how far. */
interface Busy {
  key: string;
  done: number;
  /** 0 while its members are looked for. */
  total: number;
}

const progressOf = ({ done, total }: Busy, t: Translate) => (total === 0 ? t("attention.retrying") : t("bulk.of", { done: formatNumber(done), total: formatNumber(total) }));

/** What is stuck, why, since when, and who must act: what those who run the service look at first. */
export function AttentionSection() {
  const t = useText();
  const queries = useQueryClient();
  const { news, tell } = useNews();
  const [busy, setBusy] = useState<Busy | null>(null);
  const isAway = useRef(false);
  useEffect(() => {
    isAway.current = false;
    return () => {
      isAway.current = true; // who leaves the page ends what it does
    };
  }, []);
  const [incidents, dead, timers, schedules, workflows] = [useIncidents(""), useOutbox("dead", ""), useTimers("", ""), useSchedules(), useWorkflows()];
  const tasks = useEveryTask({ scope: "every", q: "", sort: "due", workflowId: "", cursor: "", filter: '{"due":{"$ne":null}}', limit: pageSize });
  const oldest = useEveryTask({ scope: "every", q: "", sort: "created", workflowId: "", cursor: "", limit: pageSize });
  const all = [incidents, dead, timers, schedules, tasks, oldest, workflows];
  const failed = all.find(({ error, data }) => error && data === undefined);
  const nameOf = useWorkflowName();
  const words = useWords([...(incidents.data?.incidents ?? []), ...(timers.data?.timers ?? [])].map(({ workflowId }) => workflowId));
  const now = new Date().toISOString();

  const incidentsOf = (list: Incident[]) => stuckIncidents(list, (of) => incidentName(of, t, words(of.workflowId)));
  const deliveriesOf = (list: Delivery[]) => stuckDeliveries(list, (of) => deliveryName(of, t));
  const pageOf = async (cause: Cause, cursor: string) => {
    if (cause === "delivery") {
      const { outbox, next } = await loadOutbox("dead", cursor);
      return { found: deliveriesOf(outbox), next };
    }
    const { incidents: list, next } = await loadIncidents(cursor);
    return { found: incidentsOf(list), next };
  };
  const retry = async (of: Stuck) => {
    setBusy({ key: of.key, done: 0, total: 0 });
    const change = of.cause === "delivery" ? changeDelivery : changeIncident;
    let [done, bad] = [0, 0];
    try {
      const ids = await allIds(of.key, (cursor) => pageOf(of.cause, cursor));
      for (const id of ids) {
        if (isAway.current) {
          return;
        }
        try {
          await change(id, "retry"); // one after the other: a retry runs at once
        } catch (fault) {
          bad += statusOf(fault) === 404 ? 0 : 1; // it is gone, as it should be
        }
        setBusy({ key: of.key, done: ++done, total: ids.length });
      }
      const [count, number] = [done - bad, formatNumber(done - bad)];
      tell({ tone: bad === 0 ? "good" : "bad", title: t("attention.retried", { count, number, name: of.name }), ...(bad === 0 ? {} : { detail: t("attention.again", { count: bad, number: formatNumber(bad) }) }) });
    } catch (fault) {
      tell({ tone: "bad", title: t("attention.notRetried", { name: of.name }), detail: reasonFor(fault) });
    }
    setBusy(null);
    await queries.invalidateQueries({ queryKey: operationsKey });
  };

  const found = grouped([
    ...incidentsOf(incidents.data?.incidents ?? []),
    ...deliveriesOf(dead.data?.outbox ?? []),
    ...lateTimers(timers.data?.timers ?? [], now, (of) => eventName(of.event, t, words(of.workflowId))),
    ...failedSchedules(schedules.data ?? [], now),
    ...overdueTasks(tasks.data?.tasks ?? [], now, (of) => of.assigneeName ?? of.assignee ?? candidatesText(of, t)),
  ]);
  const cut: Partial<Record<Cause, boolean>> = { incident: Boolean(incidents.data?.next), expression: Boolean(incidents.data?.next), delivery: Boolean(dead.data?.next), timer: Boolean(timers.data?.next), task: Boolean(tasks.data?.next) };
  const isCut = found.some(({ cause }) => cut[cause]);
  const columns: ColumnOf<Stuck>[] = [
    { key: "what", title: t("attention.what"), head: true, cell: (of) => <What of={of} workflow={nameOf(of.workflowId)} /> },
    { key: "count", title: t("attention.count"), narrow: true, named: true, end: true, cell: (of) => (cut[of.cause] ? t("more", { count: of.count }) : formatNumber(of.count)) },
    { key: "since", title: t("attention.since"), narrow: true, named: true, cell: (of) => <Time at={of.since} as={of.cause === "task" ? "due" : "ago"} /> },
    { key: "who", title: t("attention.todo"), named: true, cell: (of) => <span className="row-text">{todoOf(of, t)}</span> },
    {
      key: "actions",
      title: t("actions"),
      narrow: true,
      cell: (of) =>
        of.ids.length > 0 && (
          <Button small isDisabled={busy !== null} aria-label={t("actionOf", { action: t("attention.retryAll"), name: of.name })} onPress={() => void retry(of)}>
            {busy?.key === of.key ? progressOf(busy, t) : t(of.count === 1 && !cut[of.cause] ? "retry" : "attention.retryAll")}
          </Button>
        ),
    },
  ];
  if (failed) {
    return <LoadFault fault={failed.error} retry={() => void Promise.all(all.map((query) => query.refetch()))} />;
  }
  return (
    <>
      {news}
      <Loaded query={{ data: all.every(({ data }) => data !== undefined) ? found : undefined, error: null, isPending: true, refetch: () => undefined }}>
        {(rows) => (
          <>
            {rows.length === 0 ? (
              <Empty sign={<CircleCheck aria-hidden />} title={t("attention.emptyTitle")} text={t("attention.emptyText")} />
            ) : (
              <DataTable label={t("section.attention")} columns={columns} rows={rows} rowKey={({ key }) => key} />
            )}
            {isCut && <Notice tone="info" title={t("attention.cut", { count: pageSize })} />}
            <LastHour />
            <Waiting tasks={oldest.data?.tasks ?? []} nameOf={nameOf} />
          </>
        )}
      </Loaded>
    </>
  );
}

function What({ of, workflow }: { of: Stuck; workflow: string }) {
  const t = useText();
  const Sign = signs[of.cause];
  return (
    <>
      <Link to={of.instanceId === "" ? pathOf(sectionOf[of.cause]) : inspectPath(of.workflowId, of.instanceId)} className="row-link">
        <Sign aria-hidden /> {of.name}
      </Link>
      <span className="row-text">
        {t(`attention.causes.${of.cause}`)} · {workflow}
      </span>
      {of.error !== "" && <span className="row-text ops-error">{of.error}</span>}
    </>
  );
}

const todoOf = ({ cause, whom }: Stuck, t: Translate) => (whom === "" ? t(`attention.todos.${cause}`) : t(`attention.todosFor.${cause}`, { whom }));

/** For each state with work for people, how long the oldest of it waits. */
function Waiting({ tasks, nameOf }: { tasks: Task[]; nameOf: (workflowId: string) => string }) {
  const t = useText();
  const rows = grouped(
    tasks.map((of) => ({ key: JSON.stringify([of.workflowId, of.title]), cause: "task", workflowId: of.workflowId, name: of.title, error: "", whom: candidatesText(of, t), since: of.created, instanceId: of.instanceId })),
  );
  if (rows.length === 0) {
    return null;
  }
  const columns: ColumnOf<Stuck>[] = [
    {
      key: "state",
      title: t("instances.state"),
      head: true,
      cell: (of) => (
        <>
          <Link to={of.instanceId === "" ? pathOf("tasks", { workflow: of.workflowId, sort: "created" }) : inspectPath(of.workflowId, of.instanceId)} className="row-link">
            {of.name}
          </Link>
          <span className="row-text">{nameOf(of.workflowId)}</span>
        </>
      ),
    },
    { key: "since", title: t("attention.since"), narrow: true, named: true, cell: (of) => <Time at={of.since} /> },
    { key: "for", title: t("tasks.candidates"), named: true, cell: (of) => of.whom },
  ];
  return (
    <section className="ops-waiting" aria-labelledby="waiting-title">
      <h3 id="waiting-title">{t("attention.waiting")}</h3>
      <p className="quiet">{t("attention.waitingText", { count: pageSize })}</p>
      <DataTable label={t("attention.waiting")} columns={columns} rows={rows} rowKey={({ key }) => key} />
    </section>
  );
}
