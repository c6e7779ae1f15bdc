import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, ServiceError } from "../api/http";
import type { Instance } from "../api/runtime";
import { discardTaskDraft, loadTaskForm, saveTaskDraft, submitTaskForm, type TaskForm } from "../api/taskForms";
import type { Caller } from "../api/types";
import { Button } from "../kit/Button";
import { Notice, Skeleton } from "../kit/Notice";
import { type FillCalls, FillIn } from "../runtime/FillIn";
import { t as say } from "../text";
import type { Taken } from "./NextSteps";
import { taskFormKey, taskFormQuery } from "./taskForms";

interface TaskFormCardProps {
  instance: Instance;
  taskId: string;
  caller: Caller;
  /** It was opened on this page: the keyboard goes there. */
  focused: boolean;
  /** The instance is to be looked at again. */
  onLook: () => void;
  onTaken: (taken: Taken) => void;
  onClose: () => void;
}

/** The form of a task, with a button for each event that takes what it asks. */
export function TaskFormCard({ instance, taskId, caller, focused, onLook, onTaken, onClose }: TaskFormCardProps) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const loaded = useQuery(taskFormQuery(instance, taskId));
  const heading = useRef<HTMLHeadingElement>(null);
  // A draft that is loaded anew begins the fields anew.
  const [generation, setGeneration] = useState(0);
  const calls = useMemo(() => callsOf(queries, instance, taskId), [queries, instance, taskId]);
  // Somebody who is typing keeps the fields, also when they cannot be sent any more.
  const [begun, setBegun] = useState(false);
  const editable = loaded.data?.form.editable === true;
  useEffect(() => {
    if (editable) {
      setBegun(true);
    }
  }, [editable]);
  useEffect(() => {
    if (focused) {
      heading.current?.focus();
    }
  }, [focused]);

  const form = loaded.data?.form;
  const title = form?.task.title ?? t("tasks.title");
  const over = loaded.error instanceof ServiceError && loaded.error.status === 404;
  // The template's own event has the first button.
  const choices = (form?.task.events ?? [])
    .filter((event) => form?.events.includes(event.name))
    .toSorted((a, b) => Number(b.name === form?.template?.submit) - Number(a.name === form?.template?.submit));
  return (
    <section className="card task-form" aria-labelledby="task-title">
      <h2 id="task-title" ref={heading} tabIndex={-1}>
        {title}
      </h2>
      {form?.task.description && <p className="quiet">{form.task.description}</p>}
      {loaded.isPending && <Skeleton label={t("form.loading")} rows={3} />}
      {over ? (
        <Notice tone="info" title={form ? t("tasks.gone", { title }) : t("tasks.goneUnnamed")} />
      ) : loaded.isError && !form ? (
        <Notice tone="bad" title={messageFor(loaded.error)} />
      ) : (
        form && !editable && <Notice tone="info" title={!form.template ? t("form.noTemplate") : form.task.assignee !== null && form.task.assignee !== caller.id ? t("tasks.taken", { title }) : t("tasks.notNow", { title })} />
      )}
      {form?.template && begun && (
        <FillIn
          key={generation}
          calls={calls}
          store={`troupe.task.${taskId}`}
          view={form}
          drops={over ? "none" : "draft"}
          choices={over || !editable ? [] : choices}
          onLook={onLook}
          onView={() => setGeneration((n) => n + 1)}
          onSubmitted={(sent) => onTaken({ name: choices.find((choice) => choice.name === sent.event)?.label ?? sent.event, moved: true, redirect: sent.redirect })}
        />
      )}
      {(over || !editable) && !loaded.isPending && (
        <p className="buttons">
          <Button onPress={onClose}>{t("close")}</Button>
        </p>
      )}
    </section>
  );
}

/** What was sent, and where the workflow leads. */
interface Submitted {
  event: string;
  redirect: string;
}

function callsOf(queries: QueryClient, instance: Instance, taskId: string): FillCalls<TaskForm["form"], Submitted> {
  const known = taskFormKey(instance, taskId);
  return {
    begin: () => Promise.resolve(),
    load: async () => {
      const loaded = await loadTaskForm(taskId);
      queries.setQueryData<TaskForm>(known, loaded);
      return loaded.form;
    },
    stored: async () => (await loadTaskForm(taskId)).form.draft,
    save: (...draft) => saveTaskDraft(taskId, ...draft),
    submit: async (data, event, key) => {
      // What is sent is sent to the instance as the person has seen it last.
      const tag = queries.getQueryData<TaskForm>(known)?.tag ?? "";
      try {
        return { event, redirect: await submitTaskForm(taskId, event, data, tag, key) };
      } catch (cause) {
        throw cause instanceof ServiceError && [404, 409, 412].includes(cause.status) ? new ServiceError(cause.status, say("actions.moved")) : cause;
      }
    },
    drop: () => discardTaskDraft(taskId),
  };
}
