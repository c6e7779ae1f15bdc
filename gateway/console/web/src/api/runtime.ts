import { client, value } from "./client";
import { ServiceError } from "./http";
import type { FormView, JSONObject, Saved } from "./types";

/** The workflow part of the path of what is bound to none. */
export const noWorkflow = "-";

/** One form or checklist that exists. */
export interface Instance {
  /** noWorkflow for plain forms and checklists. */
  workflowId: string;
  instanceId: string;
}

export const loadForm = (of: Instance, signal?: AbortSignal): Promise<FormView> => value(client.GET("/form-runtime/api/v1/form/{workflowId}/{instanceId}", { params: { path: of }, signal }));

/** Deletes a form that was never submitted, with its instance. One that is gone already is no fault. */
export async function deleteForm(of: Instance): Promise<void> {
  try {
    await value(client.DELETE("/form-runtime/api/v1/form/{workflowId}/{instanceId}", { params: { path: of } }));
  } catch (fault) {
    if (!(fault instanceof ServiceError && fault.status === 404)) {
      throw fault;
    }
  }
}

/**
 * Saves the caller's draft over the given revision, which is 0 when there was
 * none; null saves it over whatever is there. Another revision is a ServiceError
 * with status 412. digest is that of the template which the draft is written for.
 */
export const saveDraft = (of: Instance, data: JSONObject, digest: string | undefined, over: number | null, keepalive = false): Promise<Saved> =>
  value(client.PUT("/form-runtime/api/v1/draft/{workflowId}/{instanceId}", { params: { path: of }, body: digest ? { data, template: digest } : { data }, headers: conditionOf(over), keepalive }));

/** The condition that a draft is saved over a revision. */
export const conditionOf = (over: number | null): Record<string, string> => (over === null ? {} : over === 0 ? { "If-None-Match": "*" } : { "If-Match": `"${over}"` });

export async function discardDraft(of: Instance): Promise<void> {
  await value(client.DELETE("/form-runtime/api/v1/draft/{workflowId}/{instanceId}", { params: { path: of } }));
}

/**
 * Submits. The same key with the same data submits once, however often it is
 * sent. Returns the workflow's svcRedirect, empty when there is none.
 */
export async function submitForm(of: Instance, data: JSONObject, key: string): Promise<string> {
  const headers = { "Idempotency-Key": key, Prefer: "return=minimal" };
  return (await value(client.POST("/form-runtime/api/v1/submit", { body: { workflowId: of.workflowId, instanceId: of.instanceId, data }, headers }))).state.svcRedirect ?? "";
}
