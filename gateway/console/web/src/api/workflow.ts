import { client, tagged, value } from "./client";
import type { RetryKeys } from "./http";
import type { Instance } from "./runtime";
import type { JSONObject, Pending, Position, Presentation, WorkflowEvent } from "./types";

/** What the caller may send now, and the instance's entity tag for it. */
export interface Sendable {
  events: WorkflowEvent[];
  tag: string;
}

export async function loadEvents(of: Instance, signal?: AbortSignal): Promise<Sendable> {
  const { value: list, tag } = await tagged(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}/events", { params: { path: of }, signal }));
  return { events: list.events, tag };
}

/** What an instance holds for those who may read it. */
export async function loadData(of: Instance, signal?: AbortSignal): Promise<JSONObject> {
  return (await value(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}", { params: { path: of }, signal, headers: { Prefer: "return=minimal" } }))).state.svcPublic;
}

/** How people see a workflow, in the language of the pages; version 0 is the newest. */
export const loadPresentation = (workflowId: string, version: number, signal?: AbortSignal): Promise<Presentation> =>
  value(client.GET("/workflow/api/v1/presentation/{workflowId}", { params: { path: { workflowId }, query: { version: version || undefined } }, signal }));

/** What became of an event. */
export interface Sent {
  /** svcRedirect, empty when there is none. */
  redirect: string;
  states: Position[];
}

/**
 * Sends an event to the instance as the tag names it: if it has moved on since
 * the person looked, the answer is a ServiceError with status 412. Sent again with
 * the same keys after a lost answer, it happens once. Returns the instance as it
 * is then.
 */
export function sendEvent(of: Instance, name: string, data: JSONObject | null, tag: string, keys: RetryKeys): Promise<Sent> {
  const event = data === null ? { name } : { name, data };
  const body = { workflowId: of.workflowId, instanceId: of.instanceId, event };
  return keys.once(JSON.stringify(body), async (key) => {
    const headers: Record<string, string> = { "Idempotency-Key": key, Prefer: "return=minimal" };
    if (tag !== "") {
      headers["If-Match"] = tag;
    }
    const { state } = await value(client.POST("/workflow/api/v1/event", { body, headers }));
    return { redirect: state.svcRedirect ?? "", states: state.states };
  });
}

/** The address of the stream of an instance's new history entries. */
export function watchAddress(of: Instance): string {
  return new URL(`workflow/api/v1/watch/${encodeURIComponent(of.workflowId)}/${encodeURIComponent(of.instanceId)}`, document.baseURI).href;
}

/** Timers, and what was sent out and has not arrived. */
export const loadPending = (of: Instance, signal?: AbortSignal): Promise<Pending> => value(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}/pending", { params: { path: of }, signal }));
