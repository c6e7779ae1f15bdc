import { useEffect, useState } from "react";
import { Badge, type Tone } from "../kit/Badge";
import { type ColumnOf, DataTable } from "../kit/DataTable";
import { Time } from "../kit/Time";
import { useTranslation } from "react-i18next";
import { formatNumber, readable } from "../words";
import type { Health } from "./api";
import { type Chart, charts, isRate, isShort, lineOf, rounded, seriesOf, sizeOf, toneOfHealth, withReading } from "./load";
import { Loaded, reasonFor, shortId } from "./parts";
import { useHealth } from "./queries";
import { type Translate, useText } from "./text";

/** How the node that answers is, its cluster, and its load while the page is in sight. */
export function HealthSection() {
  const t = useText();
  const health = useHealth();
  const [readings, setReadings] = useState<Health[]>([]);
  const { data } = health;
  useEffect(() => {
    if (data) {
      setReadings((before) => withReading(before, data));
    }
  }, [data]);
  return (
    <Loaded query={health}>
      {(now) => (
        <div className="stack">
          <div className="ops-facts">
            <Badge tone={toneOfHealth(now)}>{t(now.ready ? "health.ready" : "health.notReady")}</Badge>
            {isShort(now) && <Badge tone="bad">{t("health.short", { count: now.cluster?.short.length ?? 0 })}</Badge>}
            <span>
              {t("health.started")} <Time at={now.started} as="exact" />
            </span>
            <span>{[now.build.version, now.build.commit.slice(0, 12), now.build.go].filter((part) => part !== "").join(" · ")}</span>
            {health.isError && <span className="overdue">{t("health.stale", { message: reasonFor(health.error) })}</span>}
          </div>
          <LoadCharts readings={readings} />
          <Nodes cluster={now.cluster} />
          <div className="ops-pair">
            <Parts parts={now.parts} />
            <Facts now={now} />
          </div>
        </div>
      )}
    </Loaded>
  );
}

const box = { width: 180, height: 40 };

function LoadCharts({ readings }: { readings: readonly Health[] }) {
  const t = useText();
  return (
    <section aria-labelledby="load-title">
      <div className="ops-line">
        <h3 id="load-title">{t("health.load")}</h3>
        <p className="quiet ops-small">{t("health.loadText")}</p>
      </div>
      <ul className="ops-charts">
        {charts.map((chart) => (
          <LoadChart key={chart} chart={chart} values={seriesOf(chart, readings)} />
        ))}
      </ul>
    </section>
  );
}

function LoadChart({ chart, values }: { chart: Chart; values: number[] }) {
  const t = useText();
  useTranslation();
  const { line, area, most } = lineOf(values, box.width, box.height);
  const last = values.at(-1);
  const text = (value: number) => (isRate(chart) ? t("health.perSecond", { value: formatNumber(rounded(value)) }) : formatNumber(value));
  const name = t(`health.chart.${chart}`);
  return (
    <li className="card ops-load">
      <p className="ops-load-name">{name}</p>
      <p className="ops-load-now">{last === undefined ? <span className="quiet">{t("health.gathering")}</span> : text(last)}</p>
      <svg
        className={chart === "failed" && most > 0 ? "spark spark-bad" : "spark"}
        viewBox={`-1 -2 ${box.width + 2} ${box.height + 4}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={t("health.chartOf", { name, now: text(last ?? 0), most: text(most) })}
      >
        <path className="spark-base" d={`M0 ${box.height}H${box.width}`} />
        {line !== "" && <path className="spark-area" d={area} />}
        {line !== "" && <path className="spark-line" d={line} />}
      </svg>
      <p className="ops-load-most">{t("health.most", { most: text(most) })}</p>
    </li>
  );
}

type Part = Health["parts"][number];

function Parts({ parts }: { parts: Part[] }) {
  const t = useText();
  const toneOfPart = (part: Part): Tone => (part.ready ? "good" : part.optional ? "waiting" : "bad");
  const columns: ColumnOf<Part>[] = [
    {
      key: "part",
      title: t("health.part"),
      head: true,
      cell: (part) => (
        <>
          {readable(part.name)}
          {part.reason && <span className="row-text ops-error">{part.reason}</span>}
        </>
      ),
    },
    { key: "state", title: t("outbox.state"), narrow: true, cell: (part) => <Badge tone={toneOfPart(part)}>{t(part.ready ? "health.working" : part.optional ? "health.limited" : "health.failing")}</Badge> },
  ];
  return (
    <section aria-labelledby="parts-title">
      <h3 id="parts-title">{t("health.parts")}</h3>
      <DataTable label={t("health.parts")} columns={columns} rows={parts} rowKey={({ name }) => name} />
    </section>
  );
}

type Node = NonNullable<Health["cluster"]>["nodes"][number];

function Nodes({ cluster }: { cluster: Health["cluster"] }) {
  const t = useText();
  if (cluster === null) {
    return null;
  }
  const columns: ColumnOf<Node>[] = [
    {
      key: "node",
      title: t("health.node"),
      head: true,
      cell: (node) => (
        <>
          {node.name ?? ""} <code>{node.name === undefined ? node.id : shortId(node.id)}</code>
          {node.id === cluster.self && <span className="row-id">{t("health.self")}</span>}
          {node.settingsDiffer && <span className="row-text ops-error">{node.differingSettings === undefined ? t("health.settings") : t("health.settingsOf", { names: node.differingSettings.join(", ") })}</span>}
        </>
      ),
    },
    { key: "state", title: t("outbox.state"), narrow: true, cell: (node) => <Badge tone={node.alive ? "good" : "bad"}>{t(node.alive ? "health.alive" : "health.silent")}</Badge> },
    { key: "voter", title: t("health.votes"), narrow: true, cell: (node) => (node.voter ? <Badge tone="active">{t("health.votes")}</Badge> : null) },
    { key: "version", title: t("health.version"), narrow: true, named: true, cell: (node) => node.version },
    { key: "led", title: t("health.led"), narrow: true, named: true, end: true, cell: (node) => formatNumber(node.led) },
    { key: "held", title: t("health.held"), narrow: true, named: true, end: true, cell: (node) => formatNumber(node.held) },
    { key: "lag", title: t("health.lag"), narrow: true, named: true, end: true, cell: (node) => formatNumber(node.lag) },
  ];
  return (
    <section aria-labelledby="nodes-title">
      <div className="ops-line">
        <h3 id="nodes-title">{t("health.nodes")}</h3>
        {cluster.short.length > 0 ? <p className="overdue ops-small">{t("health.short", { count: cluster.short.length })}</p> : <p className="quiet ops-small">{t("health.shards")}</p>}
      </div>
      <DataTable label={t("health.nodes")} columns={columns} rows={cluster.nodes} rowKey={({ id }) => id} />
    </section>
  );
}

export function sizeText(bytes: number, t: Translate): string {
  const { value, unit } = sizeOf(bytes);
  const units = [t("health.units.b0"), t("health.units.b1"), t("health.units.b2"), t("health.units.b3"), t("health.units.b4")];
  return `${formatNumber(rounded(value))} ${units[unit]}`;
}

type Fact = [name: string, value: string, isBad?: boolean];

function Facts({ now }: { now: Health }) {
  const t = useText();
  const { store, work, requests } = now;
  const counted = (name: string, value: number, isBad = false): Fact => [name, formatNumber(value), isBad && value > 0];
  const milliseconds = (value: number) => t("health.milliseconds", { value: formatNumber(rounded(value)) });
  const ofStore: Fact[] = store
    ? [
        [t("health.size"), sizeText(store.diskBytes, t)],
        [t("health.free"), store.freeBytes < 0 ? t("health.unknown") : sizeText(store.freeBytes, t)],
        [t("health.sync"), milliseconds(store.syncMicroseconds / 1000)],
        counted(t("health.stalls"), store.stalls, true),
        counted(t("health.faults"), store.faults, true),
      ]
    : [];
  const ofWork: Fact[] = work
    ? [
        counted(t("health.failedEvents"), work.incidents, true),
        counted(t("health.fired"), work.fired),
        [t("health.late"), milliseconds(work.lateMilliseconds)],
        counted(t("health.delivered"), work.delivered),
        counted(t("health.dead"), work.dead, true),
      ]
    : [];
  return (
    <>
      {ofStore.length > 0 && <FactList id="store-title" title={t("health.store")} facts={ofStore} />}
      <FactList id="work-title" title={t("health.work")} facts={[...ofWork, counted(t("health.shed"), requests.shed, true)]} />
    </>
  );
}

function FactList({ id, title, facts }: { id: string; title: string; facts: Fact[] }) {
  return facts.length === 0 ? null : (
    <section aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      <dl className="card ops-dl">
        {facts.map(([name, value, isBad]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className={isBad ? "overdue" : undefined}>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
