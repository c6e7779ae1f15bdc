import { ask, askText } from "../api/http";
import type { components } from "../api/openapi";
import type { JSONObject, Pending } from "../api/types";

// What those who run the service ask for and change.

type Schemas = components["schemas"];

export type Delivery = Schemas["Delivery"];
export type DeliveryState = Delivery["state"];
export type Incident = Schemas["Incident"];
export type Schedule = Schemas["Schedule"];
export type PublishedWorkflow = Schemas["PublishedWorkflow"];
export type Presentation = Schemas["Presentation"];
export type ListedInstance = Omit<Schemas["ListedInstance"], "_id"> & { id: string };
export interface InstanceList {
  instances: ListedInstance[];
  next: string | null;
}
export type Migrated = Schemas["Migrated"];
export type Health = Schemas["Health"];
export type Timer = Pending["timers"][number];
export type RunningTimer = Schemas["RunningTimer"];
export type PendingDelivery = Pending["deliveries"][number];

const api = "workflow/api/v1";
const encode = encodeURIComponent;

export async function loadWorkflows(signal?: AbortSignal): Promise<PublishedWorkflow[]> {
  return (await ask<Schemas["DefinitionList"]>(`${api}/definitions`, { signal })).value.definitions;
}

/** The statechart of a version, with how many instances stand at its states, as the text of a picture. */
export function loadChart(workflowId: string, version: number, signal?: AbortSignal): Promise<string> {
  return askText(`${api}/definitions/${encode(workflowId)}/${version}/diagram?counts=true`, { signal, headers: { Accept: "image/svg+xml, application/json" } });
}

export interface InstanceQuery {
  workflowId: string;
  filter: string;
  sort: string;
  cursor: string;
  limit: number;
  isPrivateShown: boolean;
}

export async function loadInstances(query: InstanceQuery, signal?: AbortSignal): Promise<InstanceList> {
  const asked = new URLSearchParams({ limit: String(query.limit), fields: query.isPrivateShown ? "title,svcPrivate" : "title" });
  for (const name of ["filter", "sort", "cursor"] as const) {
    if (query[name] !== "") {
      asked.set(name, query[name]);
    }
  }
  const { value } = await ask<Schemas["InstanceList"]>(`${api}/instances/${encode(query.workflowId)}?${asked}`, { signal });
  return { instances: value.instances.map(({ _id: id, ...rest }) => ({ id, ...rest })), next: value.next ?? null };
}

export async function countInstances(workflowId: string, filter: string, signal?: AbortSignal): Promise<number> {
  const asked = new URLSearchParams({ limit: "1", count: "true", ...(filter === "" ? {} : { filter }) });
  return (await ask<Schemas["InstanceList"]>(`${api}/instances/${encode(workflowId)}?${asked}`, { signal })).value.count ?? 0;
}

/** How many rows a page of what happens by itself has. */
export const pageSize = 50;

const paged = (cursor: string) => new URLSearchParams({ limit: String(pageSize), ...(cursor === "" ? {} : { cursor }) });

export async function loadIncidents(cursor: string, signal?: AbortSignal): Promise<Schemas["IncidentList"]> {
  return (await ask<Schemas["IncidentList"]>(`${api}/incidents?${paged(cursor)}`, { signal })).value;
}

export async function loadOutbox(state: DeliveryState | "", cursor: string, signal?: AbortSignal): Promise<Schemas["DeliveryList"]> {
  const asked = paged(cursor);
  if (state !== "") {
    asked.set("state", state);
  }
  return (await ask<Schemas["DeliveryList"]>(`${api}/outbox?${asked}`, { signal })).value;
}

export async function loadTimers(workflowId: string, cursor: string, signal?: AbortSignal): Promise<Schemas["TimerList"]> {
  const asked = paged(cursor);
  if (workflowId !== "") {
    asked.set("workflowId", workflowId);
  }
  return (await ask<Schemas["TimerList"]>(`${api}/timers?${asked}`, { signal })).value;
}

export async function loadSchedules(signal?: AbortSignal): Promise<Schedule[]> {
  return (await ask<Schemas["ScheduleList"]>(`${api}/schedules`, { signal })).value.schedules;
}

export type Repair = "retry" | "drop";

export async function changeIncident(id: string, action: Repair): Promise<void> {
  await ask(`${api}/incidents/${encode(id)}`, { method: "POST", body: { action } });
}

export async function changeDelivery(id: string, action: Repair): Promise<void> {
  await ask(`${api}/outbox/${encode(id)}`, { method: "POST", body: { action } });
}

/** Cancels an instance that no other one has invoked, and all that it has invoked. */
export async function stopTree(workflowId: string, instanceId: string): Promise<void> {
  await ask(`${api}/instance/${encode(workflowId)}/${encode(instanceId)}/stop`, { method: "POST", body: { tree: true } });
}

/** Deletes an instance with all that is stored of it, and before it all that it has invoked. */
export async function deleteInstance(workflowId: string, instanceId: string): Promise<void> {
  await ask(`${api}/instance/${encode(workflowId)}/${encode(instanceId)}?cascade=true`, { method: "DELETE" });
}

export type ScheduleAction = "pause" | "resume" | "run";

export async function changeSchedule(of: Schedule, action: ScheduleAction): Promise<void> {
  await ask(`${api}/schedules/${encode(of.workflowId)}/${encode(of.name)}`, { method: "POST", body: { action } });
}

export interface Plan {
  from: number;
  to: number;
  nodes?: Record<string, Record<string, string>>;
  timers?: "keep" | "restart" | "drop";
}

/** Gives one instance another version, or says what would become of it. */
export async function migrateOne(workflowId: string, instanceId: string, plan: Plan, dryRun: boolean): Promise<Migrated> {
  const body: JSONObject = { plan, filter: { _id: instanceId }, dryRun };
  return (await ask<Migrated>(`${api}/instances/${encode(workflowId)}/migrate`, { method: "POST", body })).value;
}

export async function loadHealth(signal?: AbortSignal): Promise<Health> {
  return (await ask<Health>("admin/api/v1/health", { signal })).value;
}
