import { ChevronLeft, Workflow } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Badge, toneOf } from "../kit/Badge";
import { type ColumnOf, DataTable } from "../kit/DataTable";
import { Empty } from "../kit/Notice";
import { Link, useQueryPart } from "../navigate";
import { formatNumber, readable } from "../words";
import { pathOf } from "./address";
import type { Presentation, PublishedWorkflow } from "./api";
import { statePath } from "./filter";
import { nameOfWorkflow } from "./names";
import { Loaded, reasonFor } from "./parts";
import { useChart, usePresentation, useWorkflows } from "./queries";
import { type Standing, standingOf } from "./standing";
import { type Translate, useText } from "./text";

/** What is published, or one workflow with where its instances stand. */
export function WorkflowsSection() {
  const [asked] = useQueryPart();
  const workflows = useWorkflows();
  return <Loaded query={workflows}>{(list) => <Workflows list={list} chosen={asked.get("workflow") ?? ""} />}</Loaded>;
}

function Workflows({ list, chosen }: { list: PublishedWorkflow[]; chosen: string }) {
  const t = useText();
  const one = list.find(({ id }) => id === chosen);
  if (one) {
    return <OneWorkflow of={one} />;
  }
  if (list.length === 0) {
    return <Empty sign={<Workflow aria-hidden />} title={t("workflowsFirst")} text={t("workflowsFirstText")} />;
  }
  return <DataTable label={t("section.workflows")} columns={columnsOf(t)} rows={list} rowKey={({ id }) => id} />;
}

function columnsOf(t: Translate): ColumnOf<PublishedWorkflow>[] {
  return [
    {
      key: "name",
      title: t("workflows.name"),
      head: true,
      cell: (of) => (
        <>
          <Link to={pathOf("workflows", { workflow: of.id })} className="row-link">
            {nameOfWorkflow(of)}
          </Link>
          <span className="row-id">{of.id}</span>
        </>
      ),
    },
    { key: "creation", title: t("workflows.creation"), narrow: true, cell: (of) => <Badge tone={of.creatable ? "good" : "neutral"}>{of.creatable ? t("workflows.can") : t("workflows.cannot")}</Badge> },
    { key: "current", title: t("workflows.current"), narrow: true, named: true, end: true, cell: (of) => formatNumber(of.current) },
    { key: "versions", title: t("workflows.versions"), narrow: true, named: true, end: true, cell: (of) => formatNumber(of.versions.length) },
    {
      key: "instances",
      title: t("section.instances"),
      narrow: true,
      cell: (of) => (
        <span className="row-actions">
          <Link to={pathOf("instances", { workflow: of.id })} className="button button-plain button-small" aria-label={t("actionOf", { action: t("workflows.all"), name: nameOfWorkflow(of) })}>
            {t("workflows.all")}
          </Link>
        </span>
      ),
    },
  ];
}

function OneWorkflow({ of }: { of: PublishedWorkflow }) {
  const t = useText();
  const [asked, change] = useQueryPart();
  const version = of.versions.find((each) => String(each) === asked.get("version")) ?? of.current;
  const name = nameOfWorkflow(of);
  const chart = useChart(of.id, version);
  const presentation = usePresentation(of.id, version);
  return (
    <div className="stack">
      <div className="ops-title">
        <p className="trail">
          <Link to={pathOf("workflows")}>
            <ChevronLeft aria-hidden />
            {t("workflows.back")}
          </Link>
        </p>
        <div className="ops-title-line">
          <h2 id="section-title" tabIndex={-1}>{name}</h2>
          <span className="row-id">{of.id}</span>
          <Badge tone={of.creatable ? "good" : "neutral"}>{of.creatable ? t("workflows.can") : t("workflows.cannot")}</Badge>
          <span className="ops-title-end">
            <label className="ops-pick">
              <span>{t("workflows.version")}</span>
              <select value={version} onChange={(event) => change({ version: Number(event.target.value) === of.current ? "" : event.target.value })}>
                {of.versions.toReversed().map((each) => (
                  <option key={each} value={each}>
                    {each === of.current ? t("workflows.versionCurrent", { version: each }) : each}
                  </option>
                ))}
              </select>
            </label>
            <Link to={pathOf("instances", { workflow: of.id })} className="button button-plain">
              {t("workflows.all")}
            </Link>
          </span>
        </div>
      </div>
      <Loaded query={chart}>
        {(svg) => (
          <div className="ops-chart">
            <section className="card ops-card" aria-labelledby="chart-title">
              <h3 id="chart-title">{t("workflows.chart")}</h3>
              {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, and keys must reach it */}
              <div className="ops-picture" role="group" aria-labelledby="chart-title" tabIndex={0}>
                <img src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`} alt={t("workflows.chartAlt", { name })} />
              </div>
            </section>
            <Stand svg={svg} workflow={of.id} presentation={presentation.data} />
          </div>
        )}
      </Loaded>
      {presentation.isError && <p className="quiet">{reasonFor(presentation.error)}</p>}
    </div>
  );
}

/** The numbers of the picture, as a table which leads to the instances. */
function Stand({ svg, workflow, presentation }: { svg: string; workflow: string; presentation: Presentation | undefined }) {
  const t = useText();
  useTranslation();
  const standing = useMemo(() => standingOf(svg), [svg]);
  const of = (machine: string, node: string) => standing.find((each) => each.machine === machine && each.node === node);
  const rows = presentation?.nodes ?? standing.map(({ machine, node }) => ({ stateMachineId: machine, nodeId: node, label: node, tone: "neutral" as const }));
  const isOne = new Set(rows.map((row) => row.stateMachineId)).size < 2;
  const columns: ColumnOf<(typeof rows)[number]>[] = [
    {
      key: "state",
      title: t("workflows.state"),
      head: true,
      cell: (row) => (
        <Link to={pathOf("instances", { workflow, filter: JSON.stringify({ [statePath]: row.nodeId }) })} className="row-link">
          <Badge tone={toneOf(row.tone)}>{row.label}</Badge>
          {!isOne && <span className="row-text">{readable(row.stateMachineId)}</span>}
        </Link>
      ),
    },
    { key: "count", title: t("workflows.count"), narrow: true, end: true, named: true, cell: (row) => countText(of(row.stateMachineId, row.nodeId), t) },
  ];
  return (
    <section className="ops-standing" aria-labelledby="standing-title">
      <h3 id="standing-title">{t("workflows.standing")}</h3>
      <p className="quiet">{standing.length === 0 ? t("workflows.none") : t("workflows.standingText")}</p>
      <DataTable label={t("workflows.standing")} columns={columns} rows={rows} rowKey={(row) => `${row.stateMachineId} ${row.nodeId}`} />
    </section>
  );
}

function countText(of: Standing | undefined, t: Translate): string {
  const number = formatNumber(of?.count ?? 0);
  return of?.how === "about" ? t("workflows.about", { number }) : of?.how === "over" ? t("workflows.over", { number }) : number;
}
