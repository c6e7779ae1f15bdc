import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { components } from "../api/openapi";
import type { Instance } from "../api/runtime";
import { Button } from "../kit/Button";
import { LoadFault, Notice, Skeleton } from "../kit/Notice";
import { migrate, type Plan, type PublishedWorkflow } from "./api";
import { reasonFor, type Told } from "./parts";
import { planOf, stepsOf } from "./plan";
import { StepFields, TimersField, Versions } from "./planFields";
import { operationsKey, usePresentation, useWorkflows } from "./queries";
import { useText } from "./text";

interface MoveCardProps {
  of: Instance;
  /** The version that the instance has, 0 when it is not known. */
  version: number;
  /** Where it stands. */
  at: components["schemas"]["Status"][];
  onTold: (told: Told) => void;
}

/** Gives an instance another version of its workflow. */
export function MoveCard(props: MoveCardProps) {
  const t = useText();
  const workflows = useWorkflows();
  const workflow = workflows.data?.find(({ id }) => id === props.of.workflowId);
  return (
    <section className="card ops-card" aria-labelledby="move-title">
      <h3 id="move-title">{t("inspect.move")}</h3>
      <p className="quiet">{t("inspect.moveText")}</p>
      {workflows.isPending && <Skeleton rows={2} />}
      {workflows.isError && !workflows.data && <LoadFault fault={workflows.error} retry={() => void workflows.refetch()} />}
      {workflow && (workflow.versions.length < 2 ? <p>{t("inspect.onlyOne")}</p> : <MoveForm key={props.version} {...props} workflow={workflow} />)}
      <p className="quiet ops-small">{t("inspect.operatorHelp")}</p>
    </section>
  );
}

function MoveForm({ of, version, at, onTold, workflow }: MoveCardProps & { workflow: PublishedWorkflow }) {
  const t = useText();
  const queries = useQueryClient();
  const versions = workflow.versions.toReversed();
  const [from, setFrom] = useState(version === 0 ? (workflow.versions[0] ?? 1) : version);
  const [wanted, setWanted] = useState(from === workflow.current ? 0 : workflow.current);
  const to = wanted !== 0 && wanted !== from ? wanted : (versions.find((each) => each !== from) ?? 0);
  const [chosen, setChosen] = useState<Record<string, string>>({});
  const [timers, setTimers] = useState<NonNullable<Plan["timers"]>>("keep");
  const [answer, setAnswer] = useState<Told | null>(null);
  const [busy, setBusy] = useState(false);
  const presentation = usePresentation(of.workflowId, to);
  const steps = stepsOf(at, presentation.data?.nodes ?? [], chosen);
  const plan = presentation.data ? planOf(from, to, steps, timers) : null;
  const changed = <T,>(set: (value: T) => void) => (value: T) => {
    setAnswer(null);
    set(value);
  };

  const move = async (dryRun: boolean) => {
    if (!plan) {
      setAnswer({ tone: "bad", title: t("inspect.needsStates") });
      return;
    }
    setBusy(true);
    try {
      const { migrated, refused } = await migrate(of.workflowId, { plan: { ...plan }, filter: { _id: of.instanceId }, dryRun, limit: 1 });
      const [refusal] = refused;
      if (refusal) {
        setAnswer({ tone: "bad", title: t(dryRun ? "inspect.cannot" : "inspect.notMoved"), detail: refusal.reason });
      } else if (migrated === 0) {
        setAnswer({ tone: "info", title: t("inspect.gone", { version: from }) });
      } else if (dryRun) {
        setAnswer({ tone: "good", title: t("inspect.wouldMove", { version: to }) });
      } else {
        setAnswer(null);
        onTold({ tone: "good", title: t("inspect.moved", { version: to }) });
        await Promise.all([queries.invalidateQueries({ queryKey: operationsKey }), queries.invalidateQueries({ queryKey: ["instance"] })]);
      }
    } catch (fault) {
      setAnswer({ tone: "bad", title: t(dryRun ? "inspect.cannot" : "inspect.notMoved"), detail: reasonFor(fault) });
    }
    setBusy(false);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void move(false);
  };
  return (
    <form className="ops-move" onSubmit={submit}>
      <div className="ops-move-versions">
        {version === 0 ? (
          <label className="field">
            <span className="label">{t("inspect.from")}</span>
            <Versions versions={versions} value={from} current={workflow.current} onChoose={changed(setFrom)} />
          </label>
        ) : (
          <p className="field">
            <span className="label">{t("inspect.from")}</span>
            <span className="ops-fixed">{from}</span>
          </p>
        )}
        <label className="field">
          <span className="label">{t("inspect.to")}</span>
          <Versions versions={versions.filter((each) => each !== from)} value={to} current={workflow.current} onChoose={changed(setWanted)} />
        </label>
      </div>
      {presentation.isError && <LoadFault fault={presentation.error} retry={() => void presentation.refetch()} />}
      {presentation.data && <StepFields steps={steps} chosen={chosen} onChoose={changed(setChosen)} />}
      <TimersField value={timers} onChoose={changed(setTimers)} />
      <div role="status">
        {answer && (
          <Notice tone={answer.tone} title={answer.title}>
            {answer.detail && <p>{answer.detail}</p>}
          </Notice>
        )}
      </div>
      <div className="buttons">
        <Button isDisabled={busy} onPress={() => void move(true)}>
          {t("inspect.check")}
        </Button>
        <Button type="submit" kind="main" isDisabled={busy}>
          {busy ? t("inspect.busy") : t("inspect.doMove")}
        </Button>
      </div>
    </form>
  );
}
