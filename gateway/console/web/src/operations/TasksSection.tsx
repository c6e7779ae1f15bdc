import type { TFunction } from "i18next";
import { useQueryClient } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { changeTask, type Task, type TaskAction } from "../api/tasks";
import { AssignDialog } from "../instance/AssignDialog";
import { Button } from "../kit/Button";
import { type ColumnOf, CursorPager, DataTable } from "../kit/DataTable";
import { SearchBox } from "../kit/ListTools";
import { Empty, Notice } from "../kit/Notice";
import { Person } from "../kit/Person";
import { Switch } from "../kit/Switch";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { Due, Priority, totalOf } from "../worklist/TasksTab";
import { inspectPath } from "./address";
import { pageSize } from "./api";
import { FilterBuilder } from "./FilterBuilder";
import { candidatesText } from "./names";
import { Loaded, reasonFor, shortId, statusOf, useNews } from "./parts";
import { operationsKey, useEveryTask, usePresentation, useWorkflowName, useWorkflows } from "./queries";
import { TaskPeople } from "./TaskPeople";
import { type Translate, useText } from "./text";
import { WorkflowPick } from "./WorkflowPick";

/** Every task that waits, one by one or by whom it waits for. */
export function TasksSection() {
  const t = useText();
  const [asked, change] = useQueryPart();
  const isByPerson = asked.get("by") === "person";
  return (
    <>
      <div className="tools">
        <Switch
          label={t("outbox.show")}
          options={[{ key: "each", label: t("tasks.each") }, { key: "person", label: t("tasks.people") }]}
          selected={isByPerson ? "person" : "each"}
          onSelect={(key) => change({ by: key === "person" ? key : "", workflow: "", q: "", filter: "", sort: "", cursor: "" })}
        />
      </div>
      {isByPerson ? <TaskPeople /> : <TaskList />}
    </>
  );
}

/** Tasks without data: whose each is, and whose it is to be. */
function TaskList() {
  const t = useText();
  const { t: common } = useTranslation();
  const queries = useQueryClient();
  const [asked, change] = useQueryPart();
  const [workflowId = "", q = "", filter = "", sort = "", cursor = ""] = ["workflow", "q", "filter", "sort", "cursor"].map((name) => asked.get(name) ?? "");
  const workflows = useWorkflows();
  const nameOf = useWorkflowName();
  const presentation = usePresentation(workflowId);
  const tasks = useEveryTask({ scope: "every", q, sort, workflowId, cursor, filter, limit: pageSize });
  const { news, tell } = useNews();
  const [assigning, setAssigning] = useState<Task | null>(null);
  const [fault, setFault] = useState("");
  const isNarrowed = q !== "" || workflowId !== "" || filter !== "";

  const act = async (task: Task, action: TaskAction, to?: string) => {
    const name = taskName(task);
    try {
      await changeTask(task.taskId, action, to);
      setAssigning(null);
      tell({ tone: "good", title: to === undefined ? common("tasks.released", { title: name }) : t("tasks.assigned", { name, to }) });
    } catch (cause) {
      if (to !== undefined && statusOf(cause) === 400) {
        setFault(common("tasks.noCandidate", { to })); // the question stays, with what was typed
        return;
      }
      setAssigning(null);
      tell(statusOf(cause) === 404 ? { tone: "info", title: common("tasks.gone", { title: name }) } : { tone: "bad", title: t("tasks.failed", { name }), detail: reasonFor(cause) });
    }
    await Promise.all([operationsKey, ["tasks"], ["instance"]].map((queryKey) => queries.invalidateQueries({ queryKey })));
  };
  const assign = (task: Task) => {
    setFault("");
    setAssigning(task);
  };
  return (
    <>
      <div className="tools">
        <WorkflowPick of={workflows.data ?? []} value={workflowId} all onPick={(workflow) => change({ workflow, cursor: "" })} />
        <div className="tools-end">
          <SearchBox label={common("list.searchIn", { list: t("section.tasks") })} value={q} onSearch={(words) => change({ q: words, cursor: "" }, "replace")} />
        </div>
      </div>
      <FilterBuilder
        filter={filter}
        stateAt="nodeId"
        fields={(["assignee", "due", "created", "priority", "status", "instanceId"] as const).map((path) => ({ path, label: t(`tasks.fields.${path}`) }))}
        example={'{"due": {"$lt": "2026-12-24"}}'}
        states={presentation.data?.nodes ?? []}
        onFilter={(to) => change({ filter: to, cursor: "" })}
      />
      <p className="ops-count" role="status">
        {tasks.data && totalOf(common, tasks.data.count)}
      </p>
      {news}
      {tasks.isError && statusOf(tasks.error) === 400 ? (
        <Notice tone="bad" title={t("tasks.refused")} alert>
          <p>{reasonFor(tasks.error)}</p>
        </Notice>
      ) : (
        <Loaded query={tasks}>
          {({ tasks: list, next }) => (
            <>
              {list.length > 0 && (
                <DataTable
                  label={t("section.tasks")}
                  columns={columnsOf(t, common, nameOf, assign, (task) => void act(task, "release"))}
                  rows={list}
                  rowKey={({ taskId }) => taskId}
                  sort={sort || "due"}
                  onSort={(to) => change({ sort: to === "due" ? "" : to, cursor: "" }, "replace")}
                  stale={tasks.isPlaceholderData}
                />
              )}
              {list.length === 0 && next === null && cursor === "" && (
                <Empty
                  sign={<CircleCheck aria-hidden />}
                  title={t(isNarrowed ? "tasks.nothingTitle" : "tasks.emptyTitle")}
                  text={t(isNarrowed ? "tasks.nothingText" : "tasks.emptyText")}
                  action={isNarrowed && <Button onPress={() => change({ q: "", workflow: "", filter: "", cursor: "" })}>{t("instances.clear")}</Button>}
                />
              )}
              <CursorPager cursor={cursor} next={next} onTurn={(to) => change({ cursor: to })} />
            </>
          )}
        </Loaded>
      )}
      {assigning && <AssignDialog task={assigning} fault={fault} onClose={() => setAssigning(null)} onAssign={(to) => void act(assigning, "assign", to)} />}
    </>
  );
}

/** What a task is called where many have the same state. */
const taskName = (task: Task) => `${task.title}, ${shortId(task.instanceId)}`;

type Common = TFunction;

function columnsOf(t: Translate, common: Common, nameOf: (workflowId: string) => string, assign: (task: Task) => void, release: (task: Task) => void): ColumnOf<Task>[] {
  return [
    {
      key: "title",
      title: t("instances.state"),
      sorts: true,
      head: true,
      cell: (task) => (
        <>
          <Link to={inspectPath(task.workflowId, task.instanceId)} className="row-link" aria-label={taskName(task)}>
            <span className="row-short">{task.title}</span>
          </Link>
          <span className="row-id" title={task.instanceId}>
            {shortId(task.instanceId)}
          </span>
          <span className="row-text">{nameOf(task.workflowId)}</span>
        </>
      ),
    },
    { key: "priority", title: t("tasks.fields.priority"), sorts: true, narrow: true, cell: (task) => <Priority of={task.priority} /> },
    { key: "due", title: t("tasks.fields.due"), sorts: true, named: true, narrow: true, cell: (task) => task.due && <Due at={task.due} /> },
    { key: "created", title: t("tasks.fields.created"), sorts: true, named: true, narrow: true, cell: (task) => <Time at={task.created} /> },
    { key: "candidates", title: t("tasks.candidates"), named: true, cell: (task) => <span className="ops-for">{candidatesText(task, t)}</span> },
    { key: "assignee", title: t("tasks.fields.assignee"), named: true, cell: (task) => (task.assignee === null ? <span className="quiet">{t("tasks.nobody")}</span> : <Person name={task.assigneeName ?? task.assignee} />) },
    {
      key: "actions",
      title: t("actions"),
      narrow: true,
      cell: (task) => (
        <span className="row-actions">
          <Button small aria-label={t("actionOf", { action: common("tasks.assign"), name: taskName(task) })} onPress={() => assign(task)}>
            {common("tasks.assign")}
          </Button>
          {task.assignee !== null && (
            <Button small aria-label={t("actionOf", { action: common("tasks.release"), name: taskName(task) })} onPress={() => release(task)}>
              {common("tasks.release")}
            </Button>
          )}
        </span>
      ),
    },
  ];
}
