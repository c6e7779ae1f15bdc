import { useQuery } from "@tanstack/react-query";
import { ChevronLeft, SquareArrowOutUpRight } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { isRefusal } from "../api/http";
import type { Instance } from "../api/runtime";
import { loadDiagram, loadSummary, type Summary } from "../api/tasks";
import { loadPending } from "../api/workflow";
import { Badge, toneOf } from "../kit/Badge";
import { Notice } from "../kit/Notice";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { instancePath } from "../route";
import { language } from "../text";
import { formatNumber } from "../words";
import { inspectPath, pathOf } from "./address";
import type { Incident, PendingDelivery, Timer } from "./api";
import { incidentName, type Named } from "./names";
import { DeleteInstance } from "./DeleteInstance";
import { DropIncident, useIncidentRepair } from "./IncidentsSection";
import { JobItems } from "./JobsSection";
import { MoveCard } from "./MoveCard";
import { deliveryName, DeliveryState, DropDelivery, LastAnswer, useDeliveryRepair } from "./OutboxSection";
import { Loaded, RepairButtons, shortId, type Told, useNews } from "./parts";
import { operationsKey, useIncidents, useWords, useWorkflowName } from "./queries";
import { StopTree } from "./StopTree";
import { useText } from "./text";

/** One instance as an operator looks after it: what it waits for, what has failed, and where it can go. */
export function InspectSection() {
  const [asked] = useQueryPart();
  const workflowId = asked.get("workflow") ?? "";
  const instanceId = asked.get("instance") ?? "";
  const instance = useMemo(() => ({ workflowId, instanceId }), [workflowId, instanceId]);
  return <Inspect key={`${workflowId} ${instanceId}`} of={instance} />;
}

function Inspect({ of }: { of: Instance }) {
  const t = useText();
  const { news, tell } = useNews();
  const key = [...operationsKey, "instance", of.workflowId, of.instanceId];
  const summary = useQuery({ queryKey: [...key, "summary", language()], queryFn: ({ signal }) => loadSummary(of, signal), retry: false });
  const pending = useQuery({ queryKey: [...key, "pending"], queryFn: ({ signal }) => loadPending(of, signal), refetchInterval: 10_000, retry: false });
  const incidents = useIncidents("");
  const workflowName = useWorkflowName();
  const running = pending.data?.children.filter(({ status }) => status === "running") ?? [];
  const isRoot = incidents.data?.incidents.some(({ kind, instanceId }) => kind === "tree" && instanceId === of.instanceId) ?? false;
  const isHidden = isRefusal(summary.error);
  const shown = isHidden ? undefined : summary.data;
  const name = shown?.title ?? workflowName(of.workflowId);
  // Of an instance that is hidden nothing says whether it has children.
  const mayStop = isHidden || (pending.data?.ended === null && (running.length > 0 || isRoot));
  return (
    <>
      <p className="trail">
        <Link to={pathOf("instances", { workflow: of.workflowId })}>
          <ChevronLeft aria-hidden />
          {t("inspect.back")}
        </Link>
      </p>
      <Head
        of={of}
        summary={shown}
        ended={pending.data?.ended ?? null}
        buttons={
          <>
            {mayStop && <StopTree of={of} name={name} running={running} tell={tell} />}
            <DeleteInstance of={of} name={name} tell={tell} />
          </>
        }
      />
      {news}
      {isHidden ? (
        <div className="stack">
          <Notice tone="info" title={t("inspect.hidden")}>
            <p>{t("inspect.hiddenText")}</p>
          </Notice>
          <Incidents of={of} tell={tell} all />
          <MoveCard of={of} version={0} at={[]} onTold={tell} />
        </div>
      ) : (
        <Loaded query={pending}>
          {({ jobs, timers, deliveries, children, ended, version }) => (
            <div className="ops-inspect">
              <div className="stack">
                <Incidents of={of} tell={tell} />
                {jobs.length > 0 && (
                  <Card id="jobs-title" title={t("section.jobs")}>
                    <JobItems jobs={jobs} tell={tell} />
                  </Card>
                )}
                <Timers of={of} timers={timers} tell={tell} />
                <Deliveries deliveries={deliveries} tell={tell} />
                {shown && <Course of={of} summary={shown} />}
                {children.length > 0 && (
                  <Card id="children-title" title={t("inspect.children")}>
                    <ul className="ops-children">
                      {children.map((child) => (
                        <li key={child.instanceId}>
                          <Link to={inspectPath(child.workflowId, child.instanceId)}>{workflowName(child.workflowId)}</Link>
                          <span className="row-id">{shortId(child.instanceId)}</span> <Badge tone={child.status === "failed" ? "bad" : child.status === "done" ? "good" : "neutral"}>{t(`inspect.statuses.${child.status}`)}</Badge>
                        </li>
                      ))}
                    </ul>
                  </Card>
                )}
              </div>
              {ended === null ? (
                shown && <MoveCard of={of} version={version} at={shown.status} onTold={tell} />
              ) : (
                <Card id="move-title" title={t("inspect.move")}>
                  <p className="quiet">{t("inspect.isEnded")}</p>
                </Card>
              )}
            </div>
          )}
        </Loaded>
      )}
    </>
  );
}

interface HeadProps {
  of: Instance;
  summary: Summary | undefined;
  ended: "done" | "cancelled" | null;
  buttons: ReactNode;
}

function Head({ of, summary, ended, buttons }: HeadProps) {
  const t = useText();
  const workflowName = useWorkflowName();
  return (
    <div className="ops-head">
      <div className="ops-title-line">
        <h2 id="section-title" tabIndex={-1}>{summary?.title ?? workflowName(of.workflowId)}</h2>
        <span className="ops-title-end">
          <Link to={instancePath(of.workflowId, of.instanceId)} className="button button-plain">
            <SquareArrowOutUpRight aria-hidden />
            {t("inspect.page")}
          </Link>
          {buttons}
        </span>
      </div>
      <p className="ops-facts">
        {summary?.status.map((status) => (
          <Badge key={`${status.stateMachineId} ${status.nodeId}`} tone={toneOf(status.tone)}>
            {status.label}
          </Badge>
        ))}
        {ended !== null && <Badge>{t(`inspect.statuses.${ended}`)}</Badge>}
        <span>{summary?.workflowName ?? workflowName(of.workflowId)}</span>
        {summary && <span>{t("inspect.version", { version: summary.version })}</span>}
        {summary && (
          <span>
            {t("inspect.changed")} <Time at={summary.updatedAt} />
          </span>
        )}
        <code className="ops-id">{of.instanceId}</code>
      </p>
    </div>
  );
}

function Card({ id, title, children }: { id: string; title: string; children: ReactNode }) {
  return (
    <section className="card ops-card" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {children}
    </section>
  );
}

/** Where it stands, and the way that it came. */
function Course({ of, summary }: { of: Instance; summary: Summary }) {
  const { t } = useTranslation();
  const picture = useQuery({ queryKey: [...operationsKey, "instance", of.workflowId, of.instanceId, "diagram", summary.updatedAt, language()], queryFn: ({ signal }) => loadDiagram(of, 0, signal), retry: false });
  return picture.data ? (
    <Card id="course-title" title={t("instance.diagram")}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, and keys must reach it */}
      <div className="ops-picture" role="group" aria-labelledby="course-title" tabIndex={0}>
        <img src={picture.data} alt={t("instance.diagramAlt", { name: summary.workflowName })} />
      </div>
    </Card>
  ) : null;
}

type Tell = (told: Told) => void;

/** Timers of an instance, those that have failed first. */
function Timers({ of, timers, tell }: { of: Instance; timers: Timer[]; tell: Tell }) {
  const t = useText();
  const nameOf = useIncidentName(of.workflowId);
  const repair = useIncidentRepair(tell, nameOf);
  const incidents = useIncidents("");
  const [dropping, setDropping] = useState<Timer | null>(null);
  const errors = new Map(incidents.data?.incidents.filter(({ instanceId }) => instanceId === of.instanceId).map(({ id, error }) => [id, error]));
  return (
    <Card id="timers-title" title={t("inspect.timers")}>
      {timers.length === 0 ? (
        <p className="quiet">{t("inspect.noTimers")}</p>
      ) : (
        <ul className="ops-items">
          {timers
            .toSorted((a, b) => Number(b.incident) - Number(a.incident))
            .map((timer) => (
              <li key={timer.id}>
                <div className="ops-item">
                  <p className="ops-strong">{nameOf(timer)}</p>
                  {errors.has(timer.id) && <p className="ops-error">{errors.get(timer.id)}</p>}
                  <p className="ops-facts">
                    <Badge tone={timer.incident ? "bad" : "waiting"}>{t(timer.incident ? "inspect.failed" : "inspect.waiting")}</Badge>
                    <span>
                      {t("inspect.due")} <Time at={timer.due} as={timer.incident ? "ago" : "due"} />
                    </span>
                  </p>
                </div>
                {timer.incident && <RepairButtons name={nameOf(timer)} onRetry={() => void repair(timer, "retry")} onDrop={() => setDropping(timer)} />}
              </li>
            ))}
        </ul>
      )}
      {dropping && <DropIncident of={dropping} name={nameOf(dropping)} onDrop={() => repair(dropping, "drop")} onClose={() => setDropping(null)} />}
    </Card>
  );
}

function Deliveries({ deliveries, tell }: { deliveries: PendingDelivery[]; tell: Tell }) {
  const t = useText();
  const repair = useDeliveryRepair(tell);
  const [dropping, setDropping] = useState<PendingDelivery | null>(null);
  return (
    <Card id="deliveries-title" title={t("inspect.deliveries")}>
      {deliveries.length === 0 ? (
        <p className="quiet">{t("inspect.noDeliveries")}</p>
      ) : (
        <ul className="ops-items">
          {deliveries.map((delivery) => (
            <li key={delivery.id}>
              <div className="ops-item">
                <p className="ops-strong">{deliveryName(delivery, t)}</p>
                {delivery.url && <code>{delivery.url}</code>}
                <LastAnswer of={delivery} />
                <p className="ops-facts">
                  <DeliveryState of={delivery} />
                  <span>
                    {t("outbox.attempts")} {formatNumber(delivery.attempts)}
                  </span>
                </p>
              </div>
              <RepairButtons name={deliveryName(delivery, t)} onRetry={() => void repair(delivery, "retry")} onDrop={() => setDropping(delivery)} />
            </li>
          ))}
        </ul>
      )}
      {dropping && <DropDelivery of={dropping} onDrop={() => repair(dropping, "drop")} onClose={() => setDropping(null)} />}
    </Card>
  );
}

function useIncidentName(workflowId: string) {
  const t = useText();
  const words = useWords([workflowId]);
  return (of: Named) => incidentName(of, t, words(workflowId));
}

/** The incidents of an instance, from the list of incidents. Without all of them, only those that are no timer that is shown. */
function Incidents({ of, tell, all = false }: { of: Instance; tell: Tell; all?: boolean }) {
  const t = useText();
  const incidents = useIncidents("");
  const nameOf = useIncidentName(of.workflowId);
  const repair = useIncidentRepair(tell, nameOf);
  const [dropping, setDropping] = useState<Incident | null>(null);
  const own = incidents.data?.incidents.filter(({ instanceId, kind }) => instanceId === of.instanceId && (all || kind !== undefined)) ?? [];
  return own.length === 0 ? null : (
    <Card id="incidents-title" title={t("inspect.incidents")}>
      <ul className="ops-items">
        {own.map((incident) => (
          <li key={incident.id}>
            <div className="ops-item">
              <p className="ops-strong">{nameOf(incident)}</p>
              <p className="ops-error">{incident.error}</p>
            </div>
            <RepairButtons name={nameOf(incident)} onRetry={incident.kind ? undefined : () => void repair(incident, "retry")} onDrop={() => setDropping(incident)} />
          </li>
        ))}
      </ul>
      {dropping && <DropIncident of={dropping} name={nameOf(dropping)} onDrop={() => repair(dropping, "drop")} onClose={() => setDropping(null)} />}
    </Card>
  );
}
