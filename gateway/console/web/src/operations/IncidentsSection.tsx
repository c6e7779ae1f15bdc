import { useQueryClient } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { useState } from "react";
import type { ColumnOf } from "../kit/DataTable";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { readable } from "../words";
import { inspectPath } from "./address";
import { changeIncident, type Incident, type Repair } from "./api";
import { incidentName, type Named, timesText } from "./names";
import { Confirm, InstanceOf, Listed, reasonFor, RepairButtons, shortId, statusOf, type Told, useNews } from "./parts";
import { operationsKey, useIncidents, useWords } from "./queries";
import { type Translate, useText } from "./text";

/** Retries or drops incidents, and tells what became of it. */
export function useIncidentRepair(tell: (told: Told) => void, nameOf: (of: Named) => string) {
  const t = useText();
  const queries = useQueryClient();
  return async (of: Named & Pick<Incident, "id">, action: Repair) => {
    const name = nameOf(of);
    try {
      await changeIncident(of.id, action);
      tell({ tone: "good", title: t(action === "retry" ? "incidents.retried" : "incidents.dropped", { name }) });
    } catch (fault) {
      tell(statusOf(fault) === 404 ? { tone: "info", title: t("incidents.gone", { name }) } : { tone: "bad", title: t("incidents.failed", { name }), detail: reasonFor(fault) });
    }
    await Promise.all([queries.invalidateQueries({ queryKey: operationsKey }), queries.invalidateQueries({ queryKey: ["instance"] })]);
  };
}

interface DropProps {
  of: Named;
  name: string;
  onDrop: () => Promise<void>;
  onClose: () => void;
}

export function DropIncident({ of, name, onDrop, onClose }: DropProps) {
  const t = useText();
  return <Confirm title={t("incidents.dropTitle")} text={t(of.kind ? "incidents.dropFailureText" : "incidents.dropText", { name })} yes={t("incidents.dropYes")} no={t("incidents.keep")} danger onYes={onDrop} onClose={onClose} />;
}

/** Events that came by themselves and failed. */
export function IncidentsSection() {
  const t = useText();
  const [asked] = useQueryPart();
  const incidents = useIncidents(asked.get("cursor") ?? "");
  const words = useWords((incidents.data?.incidents ?? []).map(({ workflowId }) => workflowId));
  const nameOf = (of: Named & Partial<Pick<Incident, "workflowId">>) => incidentName(of, t, words(of.workflowId ?? ""));
  const { news, tell } = useNews();
  const repair = useIncidentRepair(tell, nameOf);
  const [dropping, setDropping] = useState<Incident | null>(null);
  return (
    <>
      {news}
      <Listed
        label={t("section.incidents")}
        query={incidents}
        rows={({ incidents: list }) => list}
        next={({ next }) => next}
        columns={columnsOf(t, nameOf, (of) => void repair(of, "retry"), setDropping)}
        rowKey={({ id }) => id}
        empty={{ sign: <CircleCheck aria-hidden />, title: t("incidents.emptyTitle"), text: t("incidents.emptyText") }}
      />
      {dropping && <DropIncident of={dropping} name={nameOf(dropping)} onDrop={() => repair(dropping, "drop")} onClose={() => setDropping(null)} />}
    </>
  );
}

/** Where something has failed, for whom and how often. */
function Place({ of }: { of: Incident }) {
  const t = useText();
  return (
    <span className="row-text ops-place">
      <span>{timesText(of, t)}</span>
      {of.file && (
        <span>
          {t("incidents.place")} <code>{of.line ? `${of.file}:${of.line}` : of.file}</code> ({t("incidents.version", { version: of.version ?? 1 })})
        </span>
      )}
      {of.expression && <code>{of.expression}</code>}
      {of.values?.map(({ path, value }) => (
        <span key={path}>
          <code>{path}</code> {value === null ? t("incidents.missing") : <code>{value}</code>}
        </span>
      ))}
    </span>
  );
}

function columnsOf(t: Translate, nameOf: (of: Incident) => string, retry: (of: Incident) => void, drop: (of: Incident) => void): ColumnOf<Incident>[] {
  return [
    {
      key: "event",
      title: t("incidents.event"),
      head: true,
      cell: (of) => (
        <>
          {of.instanceId === "" ? (
            nameOf(of)
          ) : (
            <Link to={inspectPath(of.workflowId, of.instanceId)} className="row-link">
              {nameOf(of)}
            </Link>
          )}
          <span className="row-text ops-error">{of.error}</span>
          {of.kind && <Place of={of} />}
        </>
      ),
    },
    {
      key: "instance",
      title: t("incidents.instance"),
      cell: (of) => <InstanceOf workflowId={of.workflowId} instanceId={of.instanceId} />,
    },
    { key: "when", title: t("incidents.when"), narrow: true, named: true, cell: (of) => <Time at={of.ts} /> },
    { key: "actions", title: t("actions"), narrow: true, cell: (of) => <RepairButtons name={`${nameOf(of)}, ${of.instanceId === "" ? readable(of.workflowId) : shortId(of.instanceId)}`} onRetry={of.kind ? undefined : () => retry(of)} onDrop={() => drop(of)} /> },
  ];
}
