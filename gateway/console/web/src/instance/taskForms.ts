import { useQueries } from "@tanstack/react-query";
import type { Instance } from "../api/runtime";
import { loadTaskForm } from "../api/taskForms";
import type { Task } from "../api/tasks";
import { language } from "../text";
import { useTasks } from "../worklist/useTasks";
import { instanceKey } from "./useSummary";

/** The tasks of an instance that are the caller's or nobody's. */
export function useInstanceTasks(instance: Instance): Task[] {
  const list = useTasks({ scope: "all", q: "", sort: "", workflowId: instance.workflowId, cursor: "", limit: 10, filter: JSON.stringify({ instanceId: instance.instanceId }) });
  // NB: while another instance is asked for, its predecessor's tasks are still there.
  return list.data?.tasks.filter((task) => task.instanceId === instance.instanceId) ?? [];
}

export const taskFormKey = (instance: Instance, taskId: string) => [...instanceKey(instance), "taskForm", taskId, language()];

export const taskFormQuery = (instance: Instance, taskId: string) => ({
  queryKey: taskFormKey(instance, taskId),
  queryFn: ({ signal }: { signal: AbortSignal }) => loadTaskForm(taskId, signal),
  retry: false,
});

/** The events of an instance's tasks that the caller may send with the form of one, and whose it is. */
export function useFormEvents(instance: Instance, tasks: Task[]): Map<string, string> {
  const withForm = tasks.filter((task) => task.form !== null && task.events.length > 0);
  const forms = useQueries({ queries: withForm.map((task) => taskFormQuery(instance, task.taskId)) });
  return new Map(forms.flatMap(({ data }) => (data?.form.editable ? data.form.events.map((event) => [event, data.form.task.taskId] as const) : [])));
}
