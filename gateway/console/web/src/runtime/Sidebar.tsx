import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Instance } from "../api/runtime";
import type { Sent } from "../api/workflow";
import type { Caller, FormView, Position, Presentation, WorkflowEvent } from "../api/types";
import { ActivityList } from "../instance/ActivityList";
import { wordsOf } from "../instance/definitionWords";
import { instancePath } from "../route";
import { Link } from "../navigate";
import { Badge, toneOf } from "../kit/Badge";
import { Button, kinds } from "../kit/Button";
import { LoadFault, Skeleton } from "../kit/Notice";
import { nameOf, readable } from "../words";
import { usePresentation } from "../worklist/queries";
import { EventDialog } from "./EventDialog";
import { offered } from "./offered";
import { useWorkflow } from "./useWorkflow";

interface SidebarProps {
  instance: Instance;
  caller: Caller;
  view: FormView;
  /** The instance has moved on. */
  onMoved: () => void;
  /** The caller has sent an event, from these positions; the workflow may name a place to go on. */
  onSent: (event: WorkflowEvent, from: Position[], sent: Sent) => void;
}

/** An event that is asked about. NB: its answer may come behind what it did. */
interface Opened {
  event: WorkflowEvent;
  /** Where the workflow was then. */
  from: Position[];
}

/** The status of the workflow, the available actions, and the history. */
export function Sidebar({ instance, caller, view, onMoved, onSent }: SidebarProps) {
  const { t } = useTranslation();
  const { events, live, reload } = useWorkflow(instance, onMoved);
  const workflow = usePresentation(instance.workflowId);
  const [opened, setOpened] = useState<Opened | null>(null);
  // The stream may be shut; what the form says is news as well.
  const places = JSON.stringify(view.states);
  const shown = useRef(places);
  useEffect(() => {
    if (shown.current !== places) {
      shown.current = places;
      reload();
    }
  }, [places, reload]);
  const sendable = events.state === "ready" ? offered(events.value.events, view) : [];
  return (
    <div className="side">
      {view.states.length > 1 && (
        <section className="card" aria-labelledby="where-title">
          <h2 id="where-title">{t("status.title")}</h2>
          {/* Others move it on: that is read out when there is time. */}
          <div aria-live="polite">
            <Positions states={view.states} workflow={workflow.data} />
          </div>
        </section>
      )}
      <section className="card" aria-labelledby="can-title">
        <h2 id="can-title">{t("actions.title")}</h2>
        {events.state === "loading" && <Skeleton label={t("actions.loading")} rows={2} />}
        {events.state === "failed" && <LoadFault fault={events.fault} retry={reload} />}
        {events.state === "ready" && sendable.length === 0 && (
          <p className="quiet">{view.editable ? t("actions.fillIn") : t("actions.none")}</p>
        )}
        {sendable.length > 0 && (
          <div className="actions">
            {sendable.map((event) => (
              <Button key={event.name} kind={kinds[event.style ?? ""] ?? "plain"} onPress={() => setOpened({ event, from: view.states })}>
                {nameOf(event)}
              </Button>
            ))}
          </div>
        )}
        <p className={live ? "live live-on" : "live"}>{live ? t("status.live") : t("status.delayed")}</p>
      </section>
      <section className="card" aria-labelledby="history-title">
        <h2 id="history-title">{t("history.title")}</h2>
        <ActivityList instance={instance} caller={caller} />
        {view.submittedAt > 0 && (
          <p>
            <Link to={instancePath(instance.workflowId, instance.instanceId)}>{t("form.openInstance")}</Link>
          </p>
        )}
      </section>
      {opened && events.state === "ready" && (
        <EventDialog
          instance={instance}
          event={opened.event}
          tag={events.value.tag}
          onClose={() => setOpened(null)}
          onMoved={() => {
            reload();
            onMoved();
          }}
          onSent={(sent) => {
            setOpened(null);
            reload();
            onSent(opened.event, opened.from, sent);
          }}
        />
      )}
    </div>
  );
}

function Positions({ states, workflow }: { states: Position[]; workflow: Presentation | undefined }) {
  const words = wordsOf(workflow);
  return (
    <dl className="machines">
      {states.map((state) => {
        const seen = workflow?.nodes.find((node) => node.nodeId === state.nodeId && node.stateMachineId === state.stateMachineId);
        return (
          <div key={`${state.stateMachineId} ${state.nodeId}`}>
            <dt>{words.machine(state.stateMachineId)}</dt>
            <dd>
              <Badge tone={toneOf(seen?.tone)}>{seen?.label ?? readable(state.nodeId)}</Badge>
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
