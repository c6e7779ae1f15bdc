import { client, value } from "../api/client";
import { ServiceError } from "../api/http";
import type { components } from "../api/openapi";
import type { Instance } from "../api/runtime";
import type { Pending } from "../api/types";

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
export type BulkJob = Schemas["BulkJob"];
export type BulkRequest = Schemas["BulkRequest"];
export type User = Schemas["User"];
export type Role = Schemas["RoleList"]["roles"][number];
export type Credential = Schemas["Credential"];
export type Minute = Schemas["Minute"];
export type Backup = Schemas["Backup"];
export type Export = Schemas["Export"];
export type AuditRow = Schemas["AuditRow"];
export type Job = Schemas["ListedJob"];
export type JobType = Schemas["JobTypes"]["types"][number];
export type Timer = Pending["timers"][number];
export type PendingJob = Pending["jobs"][number];
export type RunningTimer = Schemas["RunningTimer"];
export type PendingDelivery = Pending["deliveries"][number];

export const loadWorkflows = async (signal?: AbortSignal): Promise<PublishedWorkflow[]> => (await value(client.GET("/workflow/api/v1/definitions", { signal }))).definitions;

/** The statechart of a version, with how many instances stand at its states, as the text of a picture. */
export const loadChart = (workflowId: string, version: number, signal?: AbortSignal): Promise<string> =>
  value(
    client.GET("/workflow/api/v1/definitions/{workflowId}/{version}/diagram", {
      params: { path: { workflowId, version: String(version) }, query: { counts: true } },
      parseAs: "text",
      headers: { Accept: "image/svg+xml, application/json" },
      signal,
    }),
  );

export interface InstanceQuery {
  workflowId: string;
  filter: string;
  sort: string;
  cursor: string;
  limit: number;
  isPrivateShown: boolean;
}

export async function loadInstances({ workflowId, isPrivateShown, ...query }: InstanceQuery, signal?: AbortSignal): Promise<InstanceList> {
  const fields: ("title" | "svcPrivate")[] = isPrivateShown ? ["title", "svcPrivate"] : ["title"];
  const { instances, next } = await value(client.GET("/workflow/api/v1/instances/{workflowId}", { params: { path: { workflowId }, query: { ...query, fields } }, signal }));
  return { instances: instances.map(({ _id: id, ...rest }) => Object.assign(rest, { id })), next: next ?? null };
}

export const countInstances = async (workflowId: string, filter: string, signal?: AbortSignal): Promise<number> =>
  (await value(client.GET("/workflow/api/v1/instances/{workflowId}", { params: { path: { workflowId }, query: { limit: 1, count: true, filter } }, signal }))).count ?? 0;

/** How many rows a page of what happens by itself has. */
export const pageSize = 50;

export const loadIncidents = (cursor: string, signal?: AbortSignal) => value(client.GET("/workflow/api/v1/incidents", { params: { query: { limit: pageSize, cursor } }, signal }));

export const loadOutbox = (state: DeliveryState | "", cursor: string, signal?: AbortSignal) =>
  value(client.GET("/workflow/api/v1/outbox", { params: { query: { limit: pageSize, cursor, state: state || undefined } }, signal }));

export const loadTimers = (workflowId: string, cursor: string, signal?: AbortSignal) => value(client.GET("/workflow/api/v1/timers", { params: { query: { limit: pageSize, cursor, workflowId } }, signal }));

export const loadJobTypes = async (signal?: AbortSignal): Promise<JobType[]> => (await value(client.GET("/workflow/api/v1/jobs/types", { signal }))).types;

export const loadJobs = (type: string, state: Job["state"] | "", cursor: string, signal?: AbortSignal) =>
  value(client.GET("/workflow/api/v1/jobs", { params: { query: { limit: pageSize, type, cursor, state: state || undefined } }, signal }));

export const loadSchedules = async (signal?: AbortSignal): Promise<Schedule[]> => (await value(client.GET("/workflow/api/v1/schedules", { signal }))).schedules;

export type Repair = "retry" | "drop";

export const changeIncident = (id: string, action: Repair) => value(client.POST("/workflow/api/v1/incidents/{id}", { params: { path: { id } }, body: { action } }));

export const changeDelivery = (id: string, action: Repair) => value(client.POST("/workflow/api/v1/outbox/{id}", { params: { path: { id } }, body: { action } }));

export type JobAction = "retry" | "cancel";

/** Gives a job all its attempts again, or ends it as failed for good. */
export async function changeJob(jobId: string, action: JobAction): Promise<void> {
  const { results } = await value(client.POST(`/workflow/api/v1/jobs/${action}`, { body: { jobs: [{ jobId }] } }));
  for (const { status, message = "" } of results) {
    if (status !== 200) {
      throw new ServiceError(status, message, message);
    }
  }
}

/** Cancels an instance that no other one has invoked, and all that it has invoked. */
export const stopTree = (of: Instance) => value(client.POST("/workflow/api/v1/instance/{workflowId}/{instanceId}/stop", { params: { path: of }, body: { tree: true } }));

/** Deletes an instance with all that is stored of it, and before it all that it has invoked. */
export const deleteInstance = (of: Instance) => value(client.DELETE("/workflow/api/v1/instance/{workflowId}/{instanceId}", { params: { path: of, query: { cascade: true } } }));

export type ScheduleAction = "pause" | "resume" | "run";

export const changeSchedule = ({ workflowId, name }: Schedule, action: ScheduleAction) =>
  value(client.POST("/workflow/api/v1/schedules/{workflowId}/{name}", { params: { path: { workflowId, name } }, body: { action } }));

export interface Plan {
  from: number;
  to: number;
  nodes?: Record<string, Record<string, string>>;
  timers?: "keep" | "restart" | "drop";
}

/** Gives instances another version, or with dryRun says what would become of them; a page of them at a time. */
export const migrate = (workflowId: string, body: Schemas["MigrationRequest"]): Promise<Migrated> =>
  value(client.POST("/workflow/api/v1/instances/{workflowId}/migrate", { params: { path: { workflowId } }, body }));

export const loadHealth = (signal?: AbortSignal): Promise<Health> => value(client.GET("/admin/api/v1/health", { signal }));

export const loadBulk = async (signal?: AbortSignal): Promise<BulkJob[]> => (await value(client.GET("/workflow/api/v1/bulk", { signal }))).bulk;

/** Begins a bulk job, or with dryRun counts what it would change. */
export const createBulk = (body: BulkRequest) => value(client.POST("/workflow/api/v1/bulk", { body }));

export type BulkAction = "pause" | "resume" | "cancel";

export const changeBulk = (id: string, action: BulkAction) => value(client.POST("/workflow/api/v1/bulk/{id}", { params: { path: { id } }, body: { action } }));

export const loadUsers = (cursor: string, signal?: AbortSignal) => value(client.GET("/admin/api/v1/users", { params: { query: { limit: pageSize, cursor } }, signal }));

export const loadUser = (userId: string, signal?: AbortSignal): Promise<User> => value(client.GET("/admin/api/v1/users/{userId}", { params: { path: { userId } }, signal }));

export const loadRoles = async (signal?: AbortSignal): Promise<Role[]> => (await value(client.GET("/admin/api/v1/roles", { signal }))).roles;

/** Whether a user may send an event to an instance now, and why. */
export const askPermission = (userId: string, { workflowId, instanceId }: Instance, event: string) =>
  value(client.GET("/admin/api/v1/users/{userId}/can", { params: { path: { userId }, query: { workflowId, instanceId, event } } }));

export type CredentialKind = "sessions" | "tokens";

export async function loadCredentials(kind: CredentialKind, user: string, cursor: string, signal?: AbortSignal): Promise<{ list: Credential[]; next: string | null }> {
  const params = { query: { limit: pageSize, user, cursor } };
  if (kind === "tokens") {
    const { tokens, next } = await value(client.GET("/admin/api/v1/tokens", { params, signal }));
    return { list: tokens, next };
  }
  const { sessions, next } = await value(client.GET("/admin/api/v1/sessions", { params, signal }));
  return { list: sessions, next };
}

/** Creates a token; only this answer has its secret. */
export const createToken = (body: Schemas["TokenRequest"]) => value(client.POST("/admin/api/v1/tokens", { body }));

/** Ends a session or a token for good. */
export const revoke = (kind: CredentialKind, id: string) => value(client.DELETE(`/admin/api/v1/${kind}/{id}`, { params: { path: { id } } }));

export interface AuditQuery {
  actor: string;
  action: string;
  /** A time, or empty. */
  since: string;
}

export const loadAudit = (query: AuditQuery, after: string, signal?: AbortSignal) =>
  value(client.GET("/admin/api/v1/audit", { params: { query: { ...query, after, order: "desc", limit: pageSize } }, signal }));

export const verifyAudit = () => value(client.GET("/admin/api/v1/audit/verify"));

/** What all nodes did in each of the last minutes. */
export const loadLoad = (signal?: AbortSignal) => value(client.GET("/admin/api/v1/load", { signal }));

export const loadBackups = async (signal?: AbortSignal): Promise<Backup[]> => (await value(client.GET("/admin/api/v1/backups", { signal }))).backups;

export const loadExports = async (signal?: AbortSignal): Promise<Export[]> => (await value(client.GET("/admin/api/v1/exports", { signal }))).exports;
