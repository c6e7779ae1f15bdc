import { AlarmClock } from "lucide-react";
import { timerWords, wordsOf } from "../instance/definitionWords";
import type { ColumnOf } from "../kit/DataTable";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { inspectPath } from "./address";
import type { RunningTimer } from "./api";
import { eventName } from "./names";
import { InstanceOf, Listed } from "./parts";
import { usePresentation, useTimers, useWorkflows } from "./queries";
import { type Translate, useText } from "./text";
import { WorkflowPick } from "./WorkflowPick";

/** What will come to instances by itself, the next one first. */
export function TimersSection() {
  const t = useText();
  const [asked, change] = useQueryPart();
  const workflowId = asked.get("workflow") ?? "";
  const workflows = useWorkflows();
  const timers = useTimers(workflowId, asked.get("cursor") ?? "");
  return (
    <>
      <div className="tools">
        <WorkflowPick of={workflows.data ?? []} value={workflowId} all onPick={(workflow) => change({ workflow, cursor: "" })} />
      </div>
      <Listed
        label={t("section.timers")}
        query={timers}
        rows={({ timers: list }) => list}
        next={({ next }) => next}
        columns={columnsOf(t)}
        rowKey={({ id }) => id}
        empty={{ sign: <AlarmClock aria-hidden />, title: t("timers.emptyTitle"), text: t("timers.emptyText") }}
      />
    </>
  );
}

/** What a timer is, what it will do where that is known, and until when it runs. */
function What({ of }: { of: RunningTimer }) {
  const t = useText();
  const words = wordsOf(usePresentation(of.workflowId).data);
  return (
    <>
      <Link to={inspectPath(of.workflowId, of.instanceId)} className="row-link">
        {eventName(of.event, t, words)}
      </Link>
      {(of.targetId !== undefined || of.sends !== undefined) && <span className="row-text">{timerWords(of, words)}</span>}
      {of.nodeId !== null && <span className="row-text">{t("timers.endsWith", { state: words.node(of.nodeId) })}</span>}
    </>
  );
}

function columnsOf(t: Translate): ColumnOf<RunningTimer>[] {
  return [
    {
      key: "event",
      title: t("incidents.event"),
      head: true,
      cell: (of) => <What of={of} />,
    },
    { key: "instance", title: t("incidents.instance"), cell: (of) => <InstanceOf workflowId={of.workflowId} instanceId={of.instanceId} /> },
    { key: "due", title: t("timers.due"), narrow: true, named: true, cell: (of) => <Time at={of.due} as="due" /> },
  ];
}
