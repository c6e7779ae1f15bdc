import { useEffect, useState } from "react";
import { LoadFault, Notice } from "../kit/Notice";
import { formatNumber } from "../words";
import type { Migrated, Plan, PublishedWorkflow } from "./api";
import { isLost, planOf, stepsOf } from "./plan";
import { StepFields, TimersField, Versions } from "./planFields";
import { triedMax, useMoveTrial, usePresentation } from "./queries";
import { useText } from "./text";

interface MovePlanProps {
  of: PublishedWorkflow;
  filter: Record<string, unknown>;
  /** Told whenever the plan changes; null is none. */
  onPlan: (plan: Plan | null) => void;
}

/** Asks how instances of one version go on in another one, and tries the first of them. */
export function MovePlan({ of: { id, versions, current }, filter, onPlan }: MovePlanProps) {
  const t = useText();
  const [from, setFrom] = useState(versions.find((each) => each !== current) ?? current);
  const [to, setTo] = useState(current);
  const [chosen, setChosen] = useState<Record<string, string>>({});
  const [timers, setTimers] = useState<NonNullable<Plan["timers"]>>("keep");
  const [before, after] = [usePresentation(id, from), usePresentation(id, to)];
  const steps = stepsOf(before.data?.nodes ?? [], after.data?.nodes ?? [], chosen);
  // Where nobody has chosen anything, instances in a state that is gone stay as they are.
  const plan = before.data && after.data ? planOf(from, to, steps.filter((step) => step.chosen !== ""), timers) : null;
  const trial = useMoveTrial(id, plan, filter);
  const text = JSON.stringify(plan);
  useEffect(() => onPlan(JSON.parse(text) as Plan | null), [text, onPlan]);
  const fields = (which: typeof steps) => <StepFields steps={which} chosen={chosen} onChoose={setChosen} />;
  const [lost, others] = [steps.filter(isLost), steps.filter((step) => !isLost(step))];
  const failed = [before, after].find(({ isError }) => isError);
  return (
    <div className="ops-move">
      <div className="ops-move-versions">
        {([["from", from, setFrom], ["to", to, setTo]] as const).map(([key, value, set]) => (
          <label key={key} className="field">
            <span className="label">{t(`inspect.${key}`)}</span>
            <Versions versions={versions} value={value} current={current} onChoose={set} />
          </label>
        ))}
      </div>
      {failed && <LoadFault fault={failed.error} retry={() => void failed.refetch()} />}
      {plan && (
        <>
          {fields(lost)}
          {others.length > 0 && (
            <details className="ops-more">
              <summary>{t("bulk.otherStates")}</summary>
              <div className="stack">{fields(others)}</div>
            </details>
          )}
          <TimersField value={timers} onChoose={setTimers} />
          {trial.data && <Trial of={trial.data} />}
        </>
      )}
    </div>
  );
}

/** What would become of the instances that were tried. */
function Trial({ of: { matched, migrated, refused, next } }: { of: Migrated }) {
  const t = useText();
  return (
    <Notice tone={refused.length > 0 ? "bad" : "info"} title={t("bulk.trial", { count: migrated, number: formatNumber(migrated), matched: formatNumber(matched) })}>
      {next && <p>{t("bulk.tried", { count: triedMax })}</p>}
      {refused.length > 0 && (
        <ul>
          {[...new Set(refused.map(({ reason }) => reason))].map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
    </Notice>
  );
}
