import type { PublishedWorkflow } from "./api";
import { useText } from "./text";
import { nameOfWorkflow } from "./names";

/** Chooses the workflow of a list, or with all the empty value for all of them. */
export function WorkflowPick({ of: workflows, value, all = false, onPick }: { of: PublishedWorkflow[]; value: string; all?: boolean; onPick: (workflowId: string) => void }) {
  const t = useText();
  return (
    <label className="ops-pick">
      <span>{t("workflow")}</span>
      <select value={value} onChange={(event) => onPick(event.target.value)}>
        {all && <option value="">{t("timers.allWorkflows")}</option>}
        {workflows.map((of) => (
          <option key={of.id} value={of.id}>
            {nameOfWorkflow(of)}
          </option>
        ))}
      </select>
    </label>
  );
}
