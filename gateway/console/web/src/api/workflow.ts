import { ask, type RetryKeys } from "./http";
import type { Instance } from "./runtime";
import type { EventList, InstanceReply, JSONObject, Pending, Position, Presentation, WorkflowEvent } from "./types";

const api = "workflow/api/v1";
const path = (of: Instance) => `${encodeURIComponent(of.workflowId)}/${encodeURIComponent(of.instanceId)}`;

/** What the caller may send now, and the instance's entity tag for it. */
export interface Sendable {
  events: WorkflowEvent[];
  tag: string;
}

export async function loadEvents(of: Instance, signal?: AbortSignal): Promise<Sendable> {
  const { value, tag } = await ask<EventList>(`${api}/instance/${path(of)}/events`, { signal });
  return { events: value.events, tag };
}

/** What an instance holds for those who may read it. */
export async function loadData(of: Instance, signal?: AbortSignal): Promise<JSONObject> {
  return (await ask<InstanceReply>(`${api}/instance/${path(of)}`, { signal, headers: { Prefer: "return=minimal" } })).value.state.svcPublic;
}

/** How people see a workflow, in the language of the pages; version 0 is the newest. */
export async function loadPresentation(workflowId: string, version: number, signal?: AbortSignal): Promise<Presentation> {
  return (await ask<Presentation>(`${api}/presentation/${encodeURIComponent(workflowId)}${version === 0 ? "" : `?version=${version}`}`, { signal })).value;
}

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
    const { state } = (await ask<InstanceReply>(`${api}/event`, { method: "POST", body, headers })).value;
    return { redirect: state.svcRedirect ?? "", states: state.states };
  });
}

/** The address of the stream of an instance's new history entries. */
export function watchAddress(of: Instance): string {
  return new URL(`${api}/watch/${path(of)}`, document.baseURI).href;
}

/** Timers, and what was sent out and has not arrived. */
export async function loadPending(of: Instance, signal?: AbortSignal): Promise<Pending> {
  return (await ask<Pending>(`${api}/instance/${path(of)}/pending`, { signal })).value;
}
