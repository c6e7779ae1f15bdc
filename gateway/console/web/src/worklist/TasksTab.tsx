import type { TFunction } from "i18next";
import { useQueryClient } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, ServiceError } from "../api/http";
import { changeTask, type Task } from "../api/tasks";
import type { Caller } from "../api/types";
import { Badge } from "../kit/Badge";
import { Button } from "../kit/Button";
import { type ColumnOf, CursorPager, DataTable } from "../kit/DataTable";
import { FilterMenu, SearchBox } from "../kit/ListTools";
import { Empty, LoadFault, Notice, Skeleton } from "../kit/Notice";
import { Person } from "../kit/Person";
import { Switch } from "../kit/Switch";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { wordsOf } from "../instance/definitionWords";
import { instancePath, taskPath } from "../route";
import { countedTasks, readable } from "../words";
import { scopes, tasksAsked } from "./asked";
import { usePresentation } from "./queries";
import { useTasks, useTaskWorkflows, useWorkflowNames } from "./useTasks";

/** What waits for the caller, or what the caller has decided. Looked for, sorted and cut by the service. */
export function TasksTab({ caller, done }: { caller: Caller; done: boolean }) {
  const { t } = useTranslation();
  const [asked, change] = useQueryPart();
  const [news, setNews] = useState<{ tone: "good" | "bad" | "info"; text: string } | null>(null);
  const queries = useQueryClient();
  const query = tasksAsked(asked, done);
  const { scope, sort, q, workflowId, cursor } = query;
  const list = useTasks(query);
  const tasks = list.data?.tasks ?? [];
  const narrowed = q !== "" || workflowId !== "" || (!done && scope !== "all");

  const act = async (task: Task, action: "claim" | "release") => {
    const { title } = task;
    try {
      await changeTask(task.taskId, action);
      setNews({ tone: "good", text: action === "claim" ? t("tasks.claimed", { title }) : t("tasks.released", { title }) });
    } catch (cause) {
      const status = cause instanceof ServiceError ? cause.status : 0;
      setNews(status === 409 ? { tone: "info", text: t("tasks.taken", { title }) } : status === 404 ? { tone: "info", text: t("tasks.gone", { title }) } : { tone: "bad", text: messageFor(cause) });
    }
    await queries.invalidateQueries({ queryKey: ["tasks"] });
  };
  const workflows = useTaskWorkflows(done ? "done" : "all", list.data !== undefined);
  const options = [...new Set([...(workflows.data ?? tasks.map((task) => task.workflowId)), ...(workflowId === "" ? [] : [workflowId])])].toSorted();
  const names = useWorkflowNames(options);
  return (
    <>
      <div className="tools">
        {!done && (
          <Switch label={t("tasks.scope.label")} options={scopes.map((key) => ({ key, label: t(`tasks.scope.${key}`) }))} selected={scope === "done" ? "all" : scope} onSelect={(key) => change({ scope: key === "all" ? "" : key, cursor: "" })} />
        )}
        <div className="tools-end">
          <SearchBox label={t("list.searchIn", { list: done ? t("work.tabs.decided") : t("work.tabs.waiting") })} value={q} onSearch={(words) => change({ q: words, cursor: "" }, "replace")} />
          <FilterMenu
            groups={[{ key: "workflow", title: t("tasks.workflow"), options: options.map((id, n) => ({ id, name: names[n] ?? readable(id) })) }]}
            chosen={{ workflow: workflowId === "" ? [] : [workflowId] }}
            onChoose={(_, ids) => change({ workflow: ids.at(-1) ?? "", cursor: "" })}
            onClear={() => change({ workflow: "", cursor: "" })}
          />
        </div>
      </div>
      <div role="status" className="news">
        {news && <Notice tone={news.tone} title={news.text} />}
        {narrowed && typeof list.data?.count === "number" && <span className="visually-hidden">{t("list.found", { count: list.data.count })}</span>}
      </div>
      {list.isPending && <Skeleton rows={6} />}
      {list.isError && !list.data && <LoadFault fault={list.error} retry={() => void list.refetch()} />}
      {tasks.length > 0 && (
        <DataTable
          label={done ? t("work.tabs.decided") : t("work.tabs.waiting")}
          columns={columnsOf(t, caller, done, act)}
          rows={tasks}
          rowKey={(task) => task.taskId}
          sort={done ? "" : sort || "due"}
          onSort={(to) => change({ sort: to === "due" ? "" : to, cursor: "" }, "replace")}
          stale={list.isPlaceholderData}
        />
      )}
      {list.data && tasks.length === 0 && (
        <Empty
          sign={<CircleCheck aria-hidden />}
          title={narrowed ? t("list.noResults") : done ? t("tasks.noneDone") : t("tasks.emptyTitle")}
          text={narrowed ? t("tasks.noResultsText") : done ? t("tasks.noneDoneText") : t("tasks.emptyText")}
          action={narrowed && <Button onPress={() => change({ q: "", workflow: "", scope: "", cursor: "" })}>{t("list.clearAll")}</Button>}
        />
      )}
      <CursorPager cursor={cursor} next={list.data?.next ?? null} total={list.data ? totalOf(t, list.data.count) : ""} onTurn={(to) => change({ cursor: to })} />
    </>
  );
}

/** How many there are in all. */
export const totalOf = (t: Translate, count: number | null | undefined) => (count === undefined ? "" : count === null ? t("tasks.more", { count: countedTasks }) : t("tasks.total", { count }));

type Translate = TFunction;

function columnsOf(t: Translate, caller: Caller, done: boolean, act: (task: Task, action: "claim" | "release") => Promise<void>): ColumnOf<Task>[] {
  const columns: ColumnOf<Task>[] = [
    {
      key: "title",
      title: t("tasks.title"),
      sorts: true,
      head: true,
      cell: (task) => (
        <>
          <Link to={done ? instancePath(task.workflowId, task.instanceId) : taskPath(task)} className="row-link">
            <span className="row-short">{task.title}</span>
          </Link>
          {task.description && (
            <span className="row-text">
              <span className="row-short">{task.description}</span>
            </span>
          )}
        </>
      ),
    },
    { key: "requester", title: t("tasks.requester"), cell: (task) => (task.requester === null ? null : <Person name={task.requesterName ?? task.requester} />) },
  ];
  if (done) {
    return [...columns, { key: "decision", title: t("tasks.decision"), cell: (task) => <Decision task={task} /> }, { key: "decided", title: t("tasks.decided"), narrow: true, cell: (task) => <Time at={task.done?.ts ?? task.created} /> }];
  }
  return [
    ...columns,
    { key: "priority", title: t("tasks.priority"), sorts: true, narrow: true, cell: (task) => <Priority of={task.priority} /> },
    { key: "due", title: t("tasks.due"), sorts: true, named: true, narrow: true, cell: (task) => task.due && <Due at={task.due} /> },
    { key: "created", title: t("tasks.created"), sorts: true, named: true, narrow: true, cell: (task) => <Time at={task.created} /> },
    { key: "assignee", title: t("tasks.assignee"), narrow: true, cell: (task) => <Holder task={task} caller={caller} act={act} /> },
  ];
}

/** What somebody has done with a task. */
function Decision({ task }: { task: Task }) {
  const words = wordsOf(usePresentation(task.workflowId).data);
  return task.done && <Badge tone="neutral">{words.event(task.done.event)}</Badge>;
}

/** Says only what is out of the ordinary. */
export function Priority({ of }: { of: number }) {
  const { t } = useTranslation();
  return of > 50 ? <Badge tone="bad">{t("tasks.high")}</Badge> : of < 50 ? <Badge>{t("tasks.low")}</Badge> : null;
}

export function Due({ at }: { at: string }) {
  return (
    <span className={new Date(at).getTime() < Date.now() ? "overdue" : undefined}>
      <Time at={at} as="due" />
    </span>
  );
}

interface HolderProps {
  task: Task;
  caller: Caller;
  act: (task: Task, action: "claim" | "release") => Promise<void>;
}

/** Who has the task, and a button to take it or give it back. */
function Holder({ task, caller, act }: HolderProps) {
  const { t } = useTranslation();
  const mine = task.assignee === caller.id;
  if (task.assignee !== null && !mine) {
    return <Person name={task.assigneeName ?? task.assignee} />;
  }
  return (
    <span className="row-actions">
      {mine && <Person name={t("tasks.you")} sign={false} />}
      <Button small aria-label={`${mine ? t("tasks.release") : t("tasks.claim")}: ${task.title}`} onPress={() => void act(task, mine ? "release" : "claim")}>
        {mine ? t("tasks.release") : t("tasks.claim")}
      </Button>
    </span>
  );
}
