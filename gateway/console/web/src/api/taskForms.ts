import { client, tagged, value } from "./client";
import type { components } from "./openapi";
import { conditionOf } from "./runtime";
import type { JSONObject, Saved } from "./types";

// The form for the data of a task's events.

/** The form, and the instance's entity tag for it. */
export interface TaskForm {
  form: components["schemas"]["TaskForm"];
  tag: string;
}

const of = (taskId: string) => ({ path: { taskId } });

/** Refused with 404 when the task is gone or has no form, 403 when the caller is no candidate. */
export async function loadTaskForm(taskId: string, signal?: AbortSignal): Promise<TaskForm> {
  const { value: form, tag } = await tagged(client.GET("/form-runtime/api/v1/task/{taskId}", { params: of(taskId), signal }));
  return { form, tag };
}

/** Saves the caller's draft, as saveDraft does. */
export const saveTaskDraft = (taskId: string, data: JSONObject, digest: string | undefined, over: number | null, keepalive = false): Promise<Saved> =>
  value(client.PUT("/form-runtime/api/v1/task/{taskId}/draft", { params: of(taskId), body: digest ? { data, template: digest } : { data }, headers: conditionOf(over), keepalive }));

export async function discardTaskDraft(taskId: string): Promise<void> {
  await value(client.DELETE("/form-runtime/api/v1/task/{taskId}/draft", { params: of(taskId) }));
}

/**
 * Sends an event of the task with what was filled in, to the instance as the tag names
 * it; else the answer is a ServiceError with status 412. The same key with the same
 * data sends it once. Returns the workflow's svcRedirect, empty when there is none.
 */
export async function submitTaskForm(taskId: string, event: string, data: JSONObject, tag: string, key: string): Promise<string> {
  const headers = { "Idempotency-Key": key, Prefer: "return=minimal", "If-Match": tag };
  return (await value(client.POST("/form-runtime/api/v1/task/{taskId}/submit", { params: of(taskId), body: { event, data }, headers }))).state.svcRedirect ?? "";
}
