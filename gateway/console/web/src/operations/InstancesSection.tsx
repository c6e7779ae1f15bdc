import { Columns3, Layers, ListChecks } from "lucide-react";
import type { Caller } from "../api/types";
import { Badge, toneOf } from "../kit/Badge";
import { Button } from "../kit/Button";
import { type ColumnOf, CursorPager, DataTable } from "../kit/DataTable";
import { Choices, MenuBox } from "../kit/Menu";
import { Empty, Notice } from "../kit/Notice";
import { Link, useQueryPart } from "../navigate";
import { instancePath } from "../route";
import { formatNumber, readable } from "../words";
import { inspectPath, pathOf } from "./address";
import type { InstanceList, ListedInstance, Presentation, PublishedWorkflow } from "./api";
import { FilterBuilder } from "./FilterBuilder";
import { valueAt } from "./filter";
import { Loaded, reasonFor, shortId, statusOf } from "./parts";
import { useInstanceCount, useInstances, usePresentation, useWorkflows } from "./queries";
import { type Translate, useText } from "./text";
import { Value } from "./Value";
import { ViewsMenu } from "./ViewsMenu";
import { WorkflowPick } from "./WorkflowPick";

const rowsOfPage = 50;
/** How many of the definition's columns are shown before anybody has chosen. */
const columnsAtFirst = 5;

/** Instances of a workflow: looked for, sorted and cut by the service. All of the view is in the address. */
export function InstancesSection({ caller }: { caller: Caller }) {
  const t = useText();
  const workflows = useWorkflows();
  return (
    <Loaded query={workflows}>
      {(list) => (list.length === 0 ? <Empty sign={<Layers aria-hidden />} title={t("workflowsFirst")} text={t("workflowsFirstText")} /> : <Instances list={list} caller={caller} />)}
    </Loaded>
  );
}

function Instances({ list, caller }: { list: PublishedWorkflow[]; caller: Caller }) {
  const t = useText();
  const [asked, change] = useQueryPart();
  const workflowId = (list.find(({ id }) => id === asked.get("workflow")) ?? list[0])?.id ?? "";
  const filter = asked.get("filter") ?? "";
  const sort = asked.get("sort") ?? "";
  const cursor = asked.get("cursor") ?? "";
  const presentation = usePresentation(workflowId);
  const chosen = asked.getAll("col");
  const isPrivateShown = chosen.some((path) => path.startsWith("svcPrivate.")) || asked.has("private");
  const page = useInstances({ workflowId, filter, sort, cursor, limit: rowsOfPage, isPrivateShown });
  const count = useInstanceCount(workflowId, filter);
  const known = knownPaths(presentation.data, page.data);
  const shown = chosen.length > 0 ? chosen.filter((path) => path !== "-") : (presentation.data?.columns ?? []).slice(0, columnsAtFirst).map(({ path }) => path);
  const labels = new Map(presentation.data?.columns.map(({ path, label }) => [path, label]));
  const labelOf = (path: string) => labels.get(path) ?? readable(path.split(".").slice(1).join(" "));
  return (
    <>
      <div className="tools">
        <WorkflowPick of={list} value={workflowId} onPick={(workflow) => change({ workflow, filter: "", sort: "", cursor: "", col: [], private: "" })} />
        <div className="tools-end">
          <Link to={pathOf("bulk", { new: "1", workflow: workflowId, filter })} className="button button-plain">
            <ListChecks aria-hidden />
            {t("instances.bulk")}
          </Link>
          <ViewsMenu user={caller.id} workflow={workflowId} />
          <MenuBox
            label={t("instances.columns")}
            trigger={
              <Button>
                <Columns3 aria-hidden />
                {t("instances.columns")}
              </Button>
            }
          >
            <Choices
              title={t("instances.columnsTitle")}
              options={[...new Set([...known, ...shown])].map((path) => ({ id: path, name: labelOf(path) }))}
              chosen={shown}
              several
              onChoose={(paths) => change({ col: paths.length === 0 ? ["-"] : paths }, "replace")}
            />
            <Choices title={t("instances.privates")} options={[{ id: "private", name: t("instances.privateShown") }]} chosen={isPrivateShown ? ["private"] : []} several onChoose={(on) => change({ private: on.length > 0 ? "1" : "", ...(on.length > 0 ? {} : { col: chosen.filter((path) => !path.startsWith("svcPrivate.")) }) }, "replace")} />
          </MenuBox>
        </div>
      </div>
      <FilterBuilder
        filter={filter}
        fields={[{ path: "_id", label: t("instances.id") }, ...known.map((path) => ({ path, label: labelOf(path) }))]}
        others="svcPublic."
        states={presentation.data?.nodes ?? []}
        onFilter={(to) => change({ filter: to, cursor: "" })}
      />
      <p className="ops-count" role="status">
        {count.data !== undefined && t("instances.count", { count: count.data, number: formatNumber(count.data) })}
      </p>
      {page.isError && statusOf(page.error) === 400 ? (
        <Notice tone="bad" title={t("instances.refused")} alert>
          <p>{reasonFor(page.error)}</p>
        </Notice>
      ) : (
        <Loaded query={page}>
          {({ instances, next }) => (
            <>
              {instances.length === 0 && cursor === "" && !next ? (
                <Empty
                  sign={<Layers aria-hidden />}
                  title={t(filter === "" ? "instances.emptyTitle" : "instances.nothingTitle")}
                  text={t(filter === "" ? "instances.emptyText" : "instances.nothingText")}
                  action={filter !== "" && <Button onPress={() => change({ filter: "", cursor: "" })}>{t("instances.clear")}</Button>}
                />
              ) : (
                <DataTable
                  label={t("section.instances")}
                  columns={columnsOf(t, shown, labelOf, presentation.data, instances)}
                  rows={instances}
                  rowKey={(of) => of.id}
                  sort={sort}
                  onSort={(to) => change({ sort: to, cursor: "" }, "replace")}
                  stale={page.isPlaceholderData}
                />
              )}
              <CursorPager cursor={cursor} next={next ?? null} onTurn={(to) => change({ cursor: to })} />
            </>
          )}
        </Loaded>
      )}
    </>
  );
}

/** The paths that can be shown and asked for: those of the definition, and what the page's instances have. */
function knownPaths(presentation: Presentation | undefined, list: InstanceList | undefined): string[] {
  const paths = new Set(presentation?.columns.map(({ path }) => path));
  for (const of of list?.instances ?? []) {
    for (const root of ["svcPublic", "svcPrivate"] as const) {
      Object.keys(of[root] ?? {}).forEach((key) => key !== "" && !key.includes(".") && !key.startsWith("$") && paths.add(`${root}.${key}`));
    }
  }
  return [...paths];
}

function columnsOf(t: Translate, shown: string[], labelOf: (path: string) => string, presentation: Presentation | undefined, rows: ListedInstance[]): ColumnOf<ListedInstance>[] {
  const states = new Map(presentation?.nodes.map((node) => [`${node.stateMachineId} ${node.nodeId}`, node]));
  return [
    {
      key: "_id",
      title: t("instances.name"),
      sorts: true,
      head: true,
      cell: (of) => (
        <>
          <Link to={instancePath(of.workflowId, of.id)} className="row-link">
            <span className="row-short">{of.title ?? of.id}</span>
          </Link>
          <span className="row-id" title={of.id}>
            {shortId(of.id)}
          </span>
        </>
      ),
    },
    {
      key: "states",
      title: t("instances.state"),
      cell: (of) => (
        <span className="badges">
          {of.states.map(({ stateMachineId, nodeId }) => {
            const state = states.get(`${stateMachineId} ${nodeId}`);
            return (
              <Badge key={`${stateMachineId} ${nodeId}`} tone={toneOf(state?.tone)}>
                {state?.label ?? readable(nodeId)}
              </Badge>
            );
          })}
          {of.cancelled && <Badge>{t("inspect.statuses.cancelled")}</Badge>}
        </span>
      ),
    },
    ...shown.map((path) => ({
      key: path,
      title: labelOf(path),
      sorts: presentation?.sorts.includes(path) ?? false,
      named: true,
      end: rows.some((of) => typeof valueAt(of, path) === "number"),
      cell: (of: ListedInstance) => <Value value={valueAt(of, path)} />,
    })),
    {
      key: "actions",
      title: t("actions"),
      narrow: true,
      cell: (of) => (
        <span className="row-actions">
          <Link to={inspectPath(of.workflowId, of.id)} className="button button-plain button-small" aria-label={t("actionOf", { action: t("open"), name: `${of.title ?? ""} ${shortId(of.id)}`.trim() })}>
            {t("open")}
          </Link>
        </span>
      ),
    },
  ];
}
