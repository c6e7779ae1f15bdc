import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "../kit/Button";
import { Empty, Notice } from "../kit/Notice";
import { reasonMax } from "../instance/ResetDialog";
import { useQueryPart } from "../navigate";
import { formatNumber } from "../words";
import { type BulkRequest, createBulk, type Plan, type PublishedWorkflow } from "./api";
import { FilterBuilder } from "./FilterBuilder";
import { objectOf } from "./filter";
import { MovePlan } from "./MovePlan";
import { Confirm, Loaded, reasonFor, type useDeed } from "./parts";
import { useBulkCount, usePresentation, useWorkflows } from "./queries";
import { useText } from "./text";
import { WorkflowPick } from "./WorkflowPick";

interface NewBulkProps {
  deed: ReturnType<typeof useDeed>["deed"];
  onClose: () => void;
}

/** Asks what is to be done to which instances, and says how many they are before anything is done. */
export function NewBulk(props: NewBulkProps) {
  const t = useText();
  return (
    <section className="card ops-card ops-new" aria-labelledby="bulk-title">
      <h3 id="bulk-title">{t("bulk.new")}</h3>
      <Loaded query={useWorkflows()} rows={3}>
        {(list) => (list.length === 0 ? <Empty sign={null} title={t("workflowsFirst")} text={t("workflowsFirstText")} /> : <BulkForm {...props} list={list} />)}
      </Loaded>
    </section>
  );
}

const actions = ["event", "migrate", "reset", "delete"] as const;

function BulkForm({ list, deed, onClose }: NewBulkProps & { list: PublishedWorkflow[] }) {
  const t = useText();
  const { t: common } = useTranslation();
  const [asked, change] = useQueryPart();
  const workflow = list.find(({ id }) => id === asked.get("workflow")) ?? list[0];
  const [workflowId, filter] = [workflow?.id ?? "", asked.get("filter") ?? ""];
  const presentation = usePresentation(workflowId);
  const [kind, setKind] = useState<(typeof actions)[number]>("event");
  const [event, setEvent] = useState("");
  const [data, setData] = useState("");
  const [move, setMove] = useState<Plan | null>(null);
  const [entry, setEntry] = useState("");
  const [reason, setReason] = useState("");
  const [asking, setAsking] = useState(false);

  const sent = data.trim() === "" ? {} : objectOf(data);
  const action: BulkRequest["action"] | null =
    kind === "delete"
      ? { delete: true }
      : kind === "migrate"
        ? move && { migrate: { plan: move } }
        : kind === "reset"
          ? resetOf(entry, reason)
          : event.trim() === "" || sent === null
            ? null
            : { event: { name: event.trim(), ...(data.trim() === "" ? {} : { data: sent }) } };
  const where = objectOf(filter);
  const wanted: BulkRequest | null = action && { workflowId, action, ...(where === null ? {} : { filter: where }) };
  // How many match does not depend on the reason: it is not counted again with each letter of it.
  const count = useBulkCount(wanted?.action.reset ? { ...wanted, action: { reset: { ...wanted.action.reset, reason: "-" } } } : wanted);
  const counted = count.data === null || count.data === undefined ? t("bulk.many") : t("instances.count", { count: count.data, number: formatNumber(count.data) });
  const name = t(`bulk.actions.${kind}`, { event: event.trim(), entry: entry.trim() });
  const start = async () => {
    onClose();
    await deed(() => createBulk(wanted as BulkRequest), t("bulk.started", { name }), t("bulk.notStarted", { name }));
  };
  const submit = (of: FormEvent) => {
    of.preventDefault();
    setAsking(true);
  };
  const states = presentation.data?.nodes ?? [];
  return (
    <>
      <WorkflowPick of={list} value={workflowId} onPick={(id) => change({ workflow: id, filter: "" }, "replace")} />
      <FilterBuilder
        filter={filter}
        fields={[{ path: "_id", label: t("instances.id") }, ...(presentation.data?.columns ?? [])]}
        others="svcPublic."
        states={states}
        onFilter={(text) => change({ filter: text }, "replace")}
      />
      <form className="stack" onSubmit={submit}>
        <div className="ops-fields">
          <label className="field">
            <span className="label">{t("bulk.action")}</span>
            <select value={kind} onChange={({ target }) => setKind(target.value as typeof kind)}>
              {actions.map((key) => (
                <option key={key} value={key}>
                  {t(`bulk.kinds.${key}`)}
                </option>
              ))}
            </select>
          </label>
          {kind === "reset" && (
            <>
              <label className="field">
                <span className="label">{t("bulk.to")}</span>
                <input type="text" inputMode="numeric" autoComplete="off" value={entry} onChange={({ target }) => setEntry(target.value)} />
              </label>
              <label className="field">
                <span className="label">{common("reset.reason")}</span>
                <input type="text" autoComplete="off" maxLength={reasonMax} value={reason} onChange={({ target }) => setReason(target.value)} />
              </label>
            </>
          )}
          {kind === "event" && (
            <>
              <datalist id="bulk-events">
                {(presentation.data?.events ?? []).map((each) => (
                  <option key={each.name} value={each.name}>
                    {each.label}
                  </option>
                ))}
              </datalist>
              <label className="field">
                <span className="label">{t("incidents.event")}</span>
                <input type="text" list="bulk-events" autoComplete="off" autoCapitalize="none" spellCheck={false} value={event} onChange={({ target }) => setEvent(target.value)} />
              </label>
              <label className="field">
                <span className="label">{t("bulk.data")}</span>
                <input type="text" className="ops-code" autoComplete="off" spellCheck={false} placeholder='{"by": "mail"}' value={data} aria-invalid={sent === null} onChange={({ target }) => setData(target.value)} />
                {sent === null && <span className="field-fault">{t("instances.notJSON")}</span>}
              </label>
            </>
          )}
        </div>
        {kind === "migrate" && workflow && <MovePlan key={workflowId} of={workflow} filter={where ?? {}} onPlan={setMove} />}
        {count.isError ? (
          <Notice tone="bad" title={t("bulk.refused")} alert>
            <p>{reasonFor(count.error)}</p>
          </Notice>
        ) : (
          <p className="quiet" role="status">
            {wanted === null ? t(`bulk.needs.${kind === "delete" ? "event" : kind}`) : count.data === undefined ? common("loading") : t("bulk.preview", { instances: counted })}
          </p>
        )}
        <div className="ops-filter-foot">
          <Button type="submit" kind={kind === "delete" || kind === "reset" ? "danger" : "main"} isDisabled={wanted === null || count.data === undefined || count.data === 0}>
            {t("bulk.start")}
          </Button>
          <Button onPress={onClose}>{common("cancel")}</Button>
        </div>
      </form>
      {asking && <Confirm title={t("bulk.startTitle", { name })} text={t(kind === "delete" ? "bulk.deleteText" : kind === "reset" ? "bulk.resetText" : "bulk.startText", { instances: counted })} yes={t("bulk.start")} no={common("cancel")} danger={kind === "delete" || kind === "reset"} onYes={start} onClose={() => setAsking(false)} />}
    </>
  );
}

/** Null while it lacks something. */
function resetOf(entry: string, reason: string): BulkRequest["action"] | null {
  return /^[1-9]\d{0,14}$/.test(entry.trim()) && reason.trim() !== "" ? { reset: { to: Number(entry), reason: reason.trim() } } : null;
}
