import { useQueryClient } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { useState } from "react";
import { Badge } from "../kit/Badge";
import type { ColumnOf } from "../kit/DataTable";
import { Switch } from "../kit/Switch";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { formatNumber } from "../words";
import { inspectPath } from "./address";
import { changeDelivery, type Delivery, type PendingDelivery, type Repair } from "./api";
import { Confirm, InstanceOf, Listed, reasonFor, RepairButtons, shortId, statusOf, type Told, useNews } from "./parts";
import { operationsKey, useOutbox } from "./queries";
import { type Translate, useText } from "./text";

type Sent = Pick<Delivery, "id" | "kind" | "name">;

export const deliveryName = ({ kind, name }: Pick<Delivery, "kind" | "name">, t: Translate) => (name === "" ? t(`outbox.kinds.${kind}`) : `${t(`outbox.kinds.${kind}`)} ${name}`);

/** Retries or drops deliveries, and tells what became of it. */
export function useDeliveryRepair(tell: (told: Told) => void) {
  const t = useText();
  const queries = useQueryClient();
  return async (of: Sent, action: Repair) => {
    const name = deliveryName(of, t);
    try {
      await changeDelivery(of.id, action);
      tell({ tone: "good", title: t(action === "retry" ? "outbox.retried" : "outbox.dropped", { name }) });
    } catch (fault) {
      tell(statusOf(fault) === 404 ? { tone: "info", title: t("outbox.gone", { name }) } : { tone: "bad", title: t("outbox.failed", { name }), detail: reasonFor(fault) });
    }
    await Promise.all([queries.invalidateQueries({ queryKey: operationsKey }), queries.invalidateQueries({ queryKey: ["instance"] })]);
  };
}

export function DropDelivery({ of, onDrop, onClose }: { of: Sent; onDrop: () => Promise<void>; onClose: () => void }) {
  const t = useText();
  return <Confirm title={t("outbox.dropTitle")} text={t("outbox.dropText", { name: deliveryName(of, t) })} yes={t("outbox.dropYes")} no={t("outbox.keep")} danger onYes={onDrop} onClose={onClose} />;
}

const states = ["all", "pending", "dead"] as const;

/** What has not arrived, of all instances. */
export function OutboxSection() {
  const t = useText();
  const [asked, change] = useQueryPart();
  const state = states.find((each) => each === asked.get("state")) ?? "all";
  const outbox = useOutbox(state === "all" ? "" : state, asked.get("cursor") ?? "");
  const { news, tell } = useNews();
  const repair = useDeliveryRepair(tell);
  const [dropping, setDropping] = useState<Delivery | null>(null);
  return (
    <>
      <div className="tools">
        <Switch
          label={t("outbox.show")}
          options={states.map((key) => ({ key, label: key === "all" ? t("outbox.all") : t(`outbox.states.${key}`) }))}
          selected={state}
          onSelect={(key) => change({ state: key === "all" ? "" : key, cursor: "" })}
        />
      </div>
      {news}
      <Listed
        label={t("section.outbox")}
        query={outbox}
        rows={({ outbox: list }) => list}
        next={({ next }) => next}
        columns={columnsOf(t, (of) => void repair(of, "retry"), setDropping)}
        rowKey={({ id }) => id}
        empty={{ sign: <CircleCheck aria-hidden />, title: t(state === "dead" ? "outbox.emptyDeadTitle" : "outbox.emptyTitle"), text: t(state === "dead" ? "outbox.emptyDeadText" : "outbox.emptyText") }}
      />
      {dropping && <DropDelivery of={dropping} onDrop={() => repair(dropping, "drop")} onClose={() => setDropping(null)} />}
    </>
  );
}

function columnsOf(t: Translate, retry: (of: Delivery) => void, drop: (of: Delivery) => void): ColumnOf<Delivery>[] {
  return [
    {
      key: "what",
      title: t("outbox.what"),
      head: true,
      cell: (of) => (
        <>
          <Link to={inspectPath(of.workflowId, of.instanceId)} className="row-link">
            {deliveryName(of, t)}
          </Link>
          {of.url !== undefined && <span className="row-text ops-code">{of.url}</span>}
          <LastAnswer of={of} />
        </>
      ),
    },
    {
      key: "instance",
      title: t("incidents.instance"),
      cell: (of) => <InstanceOf workflowId={of.workflowId} instanceId={of.instanceId} />,
    },
    { key: "state", title: t("outbox.state"), narrow: true, cell: (of) => <DeliveryState of={of} /> },
    { key: "attempts", title: t("outbox.attempts"), narrow: true, named: true, end: true, cell: (of) => formatNumber(of.attempts) },
    { key: "created", title: t("outbox.created"), narrow: true, named: true, cell: (of) => <Time at={of.created} /> },
    { key: "actions", title: t("actions"), narrow: true, cell: (of) => <RepairButtons name={`${deliveryName(of, t)}, ${shortId(of.instanceId)}`} onRetry={() => retry(of)} onDrop={() => drop(of)} /> },
  ];
}

export function DeliveryState({ of }: { of: Pick<Delivery, "state" | "nextAttempt"> }) {
  const t = useText();
  return (
    <span className="ops-state">
      <Badge tone={of.state === "dead" ? "bad" : "waiting"}>{t(`outbox.states.${of.state}`)}</Badge>
      {of.nextAttempt !== null && (
        <span className="row-text">
          {t("outbox.next")} <Time at={of.nextAttempt} as="due" />
        </span>
      )}
    </span>
  );
}

/** What came back last, when anything did. */
export function LastAnswer({ of }: { of: Pick<PendingDelivery, "lastStatus" | "lastError"> }) {
  const text = [of.lastStatus ? String(of.lastStatus) : "", of.lastError ?? ""].filter((part) => part !== "").join(": ");
  return text === "" ? null : <span className="row-text ops-error">{text}</span>;
}
