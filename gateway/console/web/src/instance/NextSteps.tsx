import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Instance } from "../api/runtime";
import type { Task } from "../api/tasks";
import type { Caller, WorkflowEvent } from "../api/types";
import type { Sendable } from "../api/workflow";
import { Button, kinds } from "../kit/Button";
import { LoadFault, Skeleton } from "../kit/Notice";
import { EventDialog } from "../runtime/EventDialog";
import { nameOf } from "../words";
import { TaskLines } from "./TaskLines";
import { useFormEvents } from "./taskForms";

/** What has become of an event. */
export interface Taken {
  name: string;
  moved: boolean;
  redirect: string;
}

interface NextStepsProps {
  instance: Instance;
  caller: Caller;
  /** All tasks that wait. */
  tasks: Task[];
  events: Sendable | undefined;
  fault: unknown;
  retry: () => void;
  live: boolean;
  /** The task whose form is open, "" for none: its events are on the form. */
  taskId: string;
  onTask: (taskId: string) => void;
  onMoved: () => void;
  onTaken: (taken: Taken) => void;
}

/** What may be done now. On a phone it stays in sight. */
export function NextSteps({ instance, caller, tasks, events, fault, retry, live, taskId, onTask, onMoved, onTaken }: NextStepsProps) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState<WorkflowEvent | null>(null);
  const [places, setPlaces] = useState("");
  const forms = useFormEvents(instance, tasks);
  const offered = events?.events.filter((event) => event.guard !== "false" && (taskId === "" || forms.get(event.name) !== taskId)) ?? [];
  return (
    <section className="card steps" aria-labelledby="steps-title">
      <h2 id="steps-title">{t("actions.title")}</h2>
      {!events && !fault && <Skeleton rows={1} />}
      {!events && fault !== null && fault !== undefined && <LoadFault fault={fault} retry={retry} />}
      {events && offered.length === 0 && taskId === "" && <p className="quiet">{t("actions.none")}</p>}
      {offered.length > 0 && (
        <div className="buttons">
          {offered.map((event) => (
            <Button
              key={event.name}
              kind={kinds[event.style ?? ""] ?? "plain"}
              onPress={() => {
                const form = forms.get(event.name);
                if (form !== undefined) {
                  onTask(form);
                  return;
                }
                setPlaces([...new Set(event.transitions.map((way) => way.nodeId))].join(" "));
                setOpened(event);
              }}
            >
              {nameOf(event)}
            </Button>
          ))}
        </div>
      )}
      <TaskLines instance={instance} caller={caller} tasks={tasks} onChanged={onMoved} />
      <p className={live ? "live live-on" : "live"}>{live ? t("status.live") : t("status.delayed")}</p>
      {opened && events && (
        <EventDialog
          instance={instance}
          event={opened}
          tag={events.tag}
          onClose={() => setOpened(null)}
          onMoved={onMoved}
          onSent={(sent) => {
            const from = places.split(" ");
            const moved = !from.every((node) => sent.states.some((state) => state.nodeId === node));
            setOpened(null);
            onTaken({ name: nameOf(opened), moved, redirect: sent.redirect });
          }}
        />
      )}
    </section>
  );
}
