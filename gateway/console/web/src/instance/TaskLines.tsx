import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, ServiceError } from "../api/http";
import type { Instance } from "../api/runtime";
import { changeTask, type Task, type TaskAction } from "../api/tasks";
import { type Caller, privilege } from "../api/types";
import { Button } from "../kit/Button";
import { Notice } from "../kit/Notice";
import { Person } from "../kit/Person";
import { Time } from "../kit/Time";
import { AssignDialog } from "./AssignDialog";
import { useInstanceTasks } from "./taskForms";

interface TaskLinesProps {
  instance: Instance;
  caller: Caller;
  /** All that wait, whoever has them. */
  tasks: Task[];
  onChanged: () => void;
}

/** The tasks of an instance: who has them, and whose they are to be. */
export function TaskLines({ instance, caller, tasks, onChanged }: TaskLinesProps) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [fault, setFault] = useState("");
  const [assigning, setAssigning] = useState<Task | null>(null);
  const own = new Set(useInstanceTasks(instance).map((task) => task.taskId));
  const operates = caller.privileges.includes(privilege.workflows);

  const act = async (task: Task, action: TaskAction, to?: string) => {
    setFault("");
    try {
      await changeTask(task.taskId, action, to);
      setAssigning(null);
    } catch (cause) {
      const status = cause instanceof ServiceError ? cause.status : 0;
      const { title } = task;
      setFault(status === 409 ? t("tasks.taken", { title }) : status === 404 ? t("tasks.gone", { title }) : status === 400 && to !== undefined ? t("tasks.noCandidate", { to }) : messageFor(cause));
    }
    onChanged();
    await queries.invalidateQueries({ queryKey: ["tasks"] });
  };
  return (
    <>
      {fault !== "" && assigning === null && <Notice tone="bad" title={fault} alert />}
      {tasks.map((task) => {
        const mine = task.assignee === caller.id;
        const claims = task.assignee === null && own.has(task.taskId);
        const disposes = mine || operates;
        return (
          <div key={task.taskId} className="task-line">
            <span className="task-holder">
              {tasks.length > 1 && <span>{task.title}: </span>}
              {mine ? (
                <Person name={t("tasks.assignedToYou")} sign={false} />
              ) : task.assignee === null ? (
                <span className="quiet">{t("tasks.forNobody")}</span>
              ) : (
                <>
                  <span className="quiet">{t("tasks.assignee")}</span> <Person name={task.assigneeName ?? task.assignee} />
                </>
              )}
              {task.due && (
                <span className={new Date(task.due).getTime() < Date.now() ? "overdue" : "quiet"}>
                  {t("tasks.due")} <Time at={task.due} as="due" />
                </span>
              )}
            </span>
            <span className="buttons">
              {disposes && (
                <Button small onPress={() => setAssigning(task)}>
                  {t("tasks.assign")}
                </Button>
              )}
              {(claims || (disposes && task.assignee !== null)) && (
                <Button small onPress={() => void act(task, claims ? "claim" : "release")}>
                  {claims ? t("tasks.claim") : t("tasks.release")}
                </Button>
              )}
            </span>
          </div>
        );
      })}
      {assigning && <AssignDialog task={assigning} fault={fault} onClose={() => setAssigning(null)} onAssign={(to) => void act(assigning, "assign", to)} />}
    </>
  );
}
