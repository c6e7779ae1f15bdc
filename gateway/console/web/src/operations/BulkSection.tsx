import { ListChecks, Plus } from "lucide-react";
import { useState } from "react";
import { Badge, type Tone } from "../kit/Badge";
import { Button } from "../kit/Button";
import type { ColumnOf } from "../kit/DataTable";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { formatNumber } from "../words";
import { inspectPath } from "./address";
import { type BulkAction, type BulkJob, changeBulk } from "./api";
import { NewBulk } from "./NewBulk";
import { Confirm, Listed, shortId, useDeed } from "./parts";
import { useBulk, useWorkflowName } from "./queries";
import { type Translate, useText } from "./text";

const tones: Record<BulkJob["status"], Tone> = { running: "active", paused: "waiting", done: "good", cancelled: "neutral" };

export const bulkName = ({ action, event, reset }: Pick<BulkJob, "action" | "event" | "reset">, t: Translate) =>
  t(`bulk.actions.${action}`, { event: event ?? "", entry: reset?.to ?? "" });

/** Jobs that do one thing to many instances, and a new one. */
export function BulkSection() {
  const t = useText();
  const [asked, change] = useQueryPart();
  const jobs = useBulk();
  const workflowName = useWorkflowName();
  const { news, deed } = useDeed();
  const [cancelling, setCancelling] = useState<BulkJob | null>(null);
  const nameOf = (of: BulkJob) => `${bulkName(of, t)}, ${workflowName(of.workflowId)}`;
  const act = (of: BulkJob, action: BulkAction) => deed(() => changeBulk(of.id, action), t(`bulk.told.${action}`, { name: nameOf(of) }), t("bulk.failed", { name: nameOf(of) }));
  const isNew = asked.has("new");
  const begin = (
    <Button kind="main" onPress={() => change({ new: "1" })}>
      <Plus aria-hidden />
      {t("bulk.new")}
    </Button>
  );
  const columns: ColumnOf<BulkJob>[] = [
    {
      key: "what",
      title: t("bulk.what"),
      head: true,
      cell: (of) => (
        <>
          <span className="ops-strong">{bulkName(of, t)}</span>
          <span className="row-text">
            {workflowName(of.workflowId)} · {of.user}
          </span>
          {of.failures.length > 0 && <Failures of={of} />}
        </>
      ),
    },
    { key: "state", title: t("outbox.state"), narrow: true, cell: (of) => <Badge tone={of.status === "done" && of.failed > 0 ? "bad" : tones[of.status]}>{t(`bulk.statuses.${of.status}`)}</Badge> },
    { key: "progress", title: t("bulk.progress"), narrow: true, cell: (of) => <Progress of={of} name={nameOf(of)} /> },
    { key: "created", title: t("bulk.created"), narrow: true, named: true, cell: (of) => <Time at={of.created} /> },
    {
      key: "actions",
      title: t("actions"),
      narrow: true,
      cell: (of) =>
        (of.status === "running" || of.status === "paused") && (
          <span className="row-actions">
            {(["pause", "resume"] as const)
              .filter((action) => (action === "pause") === (of.status === "running"))
              .map((action) => (
                <Button key={action} small aria-label={t("actionOf", { action: t(`bulk.${action}`), name: nameOf(of) })} onPress={() => void act(of, action)}>
                  {t(`bulk.${action}`)}
                </Button>
              ))}
            <Button small aria-label={t("actionOf", { action: t("bulk.cancel"), name: nameOf(of) })} onPress={() => setCancelling(of)}>
              {t("bulk.cancel")}
            </Button>
          </span>
        ),
    },
  ];
  return (
    <>
      {news}
      {isNew ? <NewBulk deed={deed} onClose={() => change({ new: "", workflow: "", filter: "" })} /> : (jobs.data?.length ?? 0) > 0 && <div className="tools">{begin}</div>}
      <Listed
        label={t("section.bulk")}
        query={jobs}
        rows={(list) => list}
        columns={columns}
        rowKey={({ id }) => id}
        empty={{ sign: <ListChecks aria-hidden />, title: t("bulk.emptyTitle"), text: t("bulk.emptyText"), action: !isNew && begin }}
      />
      {cancelling && <Confirm title={t("bulk.cancelTitle")} text={t("bulk.cancelText")} yes={t("bulk.cancelYes")} no={t("bulk.keep")} danger onYes={() => act(cancelling, "cancel")} onClose={() => setCancelling(null)} />}
    </>
  );
}

function Progress({ of, name }: { of: BulkJob; name: string }) {
  const t = useText();
  const [done, total] = [of.done + of.failed, of.total];
  return (
    <span className="ops-progress">
      {total !== null && of.status !== "done" && <progress value={Math.min(done, total)} max={Math.max(total, 1)} aria-label={t("actionOf", { action: t("bulk.progress"), name })} />}
      <span>{total === null || of.status === "done" ? formatNumber(of.done) : t("bulk.of", { done: formatNumber(of.done), total: formatNumber(total) })}</span>
      {of.failed > 0 && <span className="row-text overdue">{t("bulk.failures", { count: of.failed, number: formatNumber(of.failed) })}</span>}
    </span>
  );
}

/** The first failures: which instance, and why. */
function Failures({ of }: { of: BulkJob }) {
  const t = useText();
  return (
    <details className="ops-more">
      <summary>{t("bulk.why")}</summary>
      <ul>
        {of.failures.map(({ instanceId, error }) => (
          <li key={instanceId}>
            <Link to={inspectPath(of.workflowId, instanceId)}>{shortId(instanceId)}</Link> <span className="ops-error">{error}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
