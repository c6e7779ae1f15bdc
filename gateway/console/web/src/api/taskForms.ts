import { ask } from "./http";
import type { components } from "./openapi";
import { conditionOf } from "./runtime";
import type { InstanceReply, JSONObject, Saved } from "./types";

// The form for the data of a task's events.

/** The form, and the instance's entity tag for it. */
export interface TaskForm {
  form: components["schemas"]["TaskForm"];
  tag: string;
}

const path = (taskId: string) => `form-runtime/api/v1/task/${encodeURIComponent(taskId)}`;

/** Refused with 404 when the task is gone or has no form, 403 when the caller is no candidate. */
export async function loadTaskForm(taskId: string, signal?: AbortSignal): Promise<TaskForm> {
  const { value, tag } = await ask<TaskForm["form"]>(path(taskId), { signal });
  return { form: value, tag };
}

/** Saves the caller's draft, as saveDraft does. */
export async function saveTaskDraft(taskId: string, data: JSONObject, digest: string | undefined, over: number | null, keepalive = false): Promise<Saved> {
  return (await ask<Saved>(`${path(taskId)}/draft`, { method: "PUT", body: digest ? { data, template: digest } : { data }, headers: conditionOf(over), keepalive })).value;
}

export async function discardTaskDraft(taskId: string): Promise<void> {
  await ask(`${path(taskId)}/draft`, { method: "DELETE" });
}

/**
 * Sends an event of the task with what was filled in, to the instance as the tag names
 * it; else the answer is a ServiceError with status 412. The same key with the same
 * data sends it once. Returns the workflow's svcRedirect, empty when there is none.
 */
export async function submitTaskForm(taskId: string, event: string, data: JSONObject, tag: string, key: string): Promise<string> {
  const headers = { "Idempotency-Key": key, Prefer: "return=minimal", "If-Match": tag };
  return (await ask<InstanceReply>(`${path(taskId)}/submit`, { method: "POST", body: { event, data }, headers })).value.state.svcRedirect ?? "";
}
