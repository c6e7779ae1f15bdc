import { useEffect, useRef, useState } from "react";
import { messageFor } from "../api/http";
import type { Instance } from "../api/runtime";
import type { Sent } from "../api/workflow";
import type { FormView, Position, WorkflowEvent } from "../api/types";
import { Chip } from "../ui/Chip";
import { LoadFault, Skeleton } from "../ui/Notice";
import { readable } from "../words";
import { EventDialog } from "./EventDialog";
import { HistoryList } from "./HistoryList";
import { offered } from "./offered";
import { useWorkflow } from "./useWorkflow";

interface SidebarProps {
  instance: Instance;
  view: FormView;
  /** The instance has moved on. */
  onMoved: () => void;
  /** The caller has sent an event, from these positions; the workflow may name a place to go on. */
  onSent: (eventName: string, from: Position[], sent: Sent) => void;
}

/** An event that is asked about. NB: its answer may come behind what it did. */
interface Opened {
  event: WorkflowEvent;
  /** Where the workflow was then. */
  from: Position[];
}

/** The status of the workflow, the available actions, and the history. */
export function Sidebar({ instance, view, onMoved, onSent }: SidebarProps) {
  const { events, history, live, reload } = useWorkflow(instance, onMoved);
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
      <section className="card" aria-labelledby="where-title">
        <h2 id="where-title">Status</h2>
        {/* Others move it on: that is read out when there is time. */}
        <div aria-live="polite">
          <Positions states={view.states} />
        </div>
        <p className={live ? "live live-on" : "live"}>{live ? "Live updates" : "Updates may be delayed"}</p>
      </section>
      <section className="card" aria-labelledby="can-title">
        <h2 id="can-title">Actions</h2>
        {events.state === "loading" && <Skeleton label="Loading actions" rows={2} />}
        {events.state === "failed" && <LoadFault message={messageFor(events.fault)} retry={reload} />}
        {events.state === "ready" && sendable.length === 0 && (
          <p className="quiet">{view.editable ? "Fill in the form and submit it." : "No actions available."}</p>
        )}
        {sendable.length > 0 && (
          <div className="actions">
            {sendable.map((event) => (
              <button key={event.name} type="button" className="button" onClick={() => setOpened({ event, from: view.states })}>
                {readable(event.name)}
              </button>
            ))}
          </div>
        )}
      </section>
      <section className="card" aria-labelledby="history-title">
        <h2 id="history-title">History</h2>
        {history.state === "loading" && <Skeleton label="Loading history" rows={3} />}
        {history.state === "failed" && <LoadFault message={messageFor(history.fault)} retry={reload} />}
        {history.state === "ready" && <HistoryList history={history.value} machines={view.states.map((state) => state.stateMachineId)} />}
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
            onSent(opened.event.name, opened.from, sent);
          }}
        />
      )}
    </div>
  );
}

function Positions({ states }: { states: Position[] }) {
  const only = states.length === 1 ? states[0] : undefined;
  if (only) {
    return (
      <p className="where">
        <Chip>{readable(only.nodeId)}</Chip>
      </p>
    );
  }
  return (
    <dl className="machines">
      {states.map((state) => (
        <div key={`${state.stateMachineId} ${state.nodeId}`}>
          <dt>{readable(state.stateMachineId)}</dt>
          <dd>
            <Chip>{readable(state.nodeId)}</Chip>
          </dd>
        </div>
      ))}
    </dl>
  );
}
