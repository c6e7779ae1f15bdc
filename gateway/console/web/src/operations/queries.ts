import { keepPreviousData, useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { loadTasks, type TaskQuery } from "../api/tasks";
import { loadPresentation } from "../api/workflow";
import { wordsOf, type Words } from "../instance/definitionWords";
import { language } from "../text";
import { readable } from "../words";
import * as api from "./api";
import { nameOfWorkflow } from "./names";

/** How often what happens by itself is asked for while the page is in sight. */
const lookEvery = 10_000;
/** How often the load is read. */
export const readEvery = 3_000;

/** The start of every key: all of it is asked for again after a change. */
export const operationsKey = ["operations"];

export const useWorkflows = () => useQuery({ queryKey: [...operationsKey, "workflows"], queryFn: ({ signal }) => api.loadWorkflows(signal) });

/** What workflows are called; one that is not known yet, or to this person, by its id made readable. */
export function useWorkflowName(): (workflowId: string) => string {
  const names = new Map(useWorkflows().data?.map((of) => [of.id, nameOfWorkflow(of)]));
  return (workflowId) => names.get(workflowId) ?? readable(workflowId);
}

const presentationQuery = (workflowId: string, version: number) => ({
  queryKey: [...operationsKey, "presentation", workflowId, version, language()],
  queryFn: ({ signal }: { signal: AbortSignal }) => loadPresentation(workflowId, version, signal),
  enabled: workflowId !== "",
  retry: false,
});

export const usePresentation = (workflowId: string, version = 0) => useQuery(presentationQuery(workflowId, version));

/** What nodes and events are called in the newest versions of some workflows. */
export function useWords(workflowIds: readonly string[]): (workflowId: string) => Words {
  const ids = [...new Set(workflowIds)];
  const found = useQueries({ queries: ids.map((id) => presentationQuery(id, 0)) });
  const words = new Map(ids.map((id, i) => [id, wordsOf(found[i]?.data)]));
  return (id) => words.get(id) ?? wordsOf(undefined);
}

export const useChart = (workflowId: string, version: number) =>
  useQuery({ queryKey: [...operationsKey, "chart", workflowId, version, language()], queryFn: ({ signal }) => api.loadChart(workflowId, version, signal), refetchInterval: 3 * lookEvery, placeholderData: keepPreviousData });

export const useInstances = (query: api.InstanceQuery) =>
  useQuery({ queryKey: [...operationsKey, "instances", query, language()], queryFn: ({ signal }) => api.loadInstances(query, signal), placeholderData: keepPreviousData, enabled: query.workflowId !== "" });

export const useInstanceCount = (workflowId: string, filter: string) =>
  useQuery({ queryKey: [...operationsKey, "count", workflowId, filter], queryFn: ({ signal }) => api.countInstances(workflowId, filter, signal), retry: false, enabled: workflowId !== "" });

/** The tasks of everybody. */
export const useEveryTask = (query: TaskQuery) =>
  useQuery({ queryKey: [...operationsKey, "tasks", query, language()], queryFn: ({ signal }) => loadTasks(query, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery });

export const useIncidents = (cursor: string, enabled = true) =>
  useQuery({ queryKey: [...operationsKey, "incidents", cursor], queryFn: ({ signal }) => api.loadIncidents(cursor, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery, enabled });

export const useOutbox = (state: api.DeliveryState | "", cursor: string, enabled = true) =>
  useQuery({ queryKey: [...operationsKey, "outbox", state, cursor], queryFn: ({ signal }) => api.loadOutbox(state, cursor, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery, enabled });

export const useTimers = (workflowId: string, cursor: string) =>
  useQuery({ queryKey: [...operationsKey, "timers", workflowId, cursor], queryFn: ({ signal }) => api.loadTimers(workflowId, cursor, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery });

export const useJobTypes = () => useQuery({ queryKey: [...operationsKey, "job-types"], queryFn: ({ signal }) => api.loadJobTypes(signal), refetchInterval: lookEvery });

export const useJobs = (type: string, state: api.Job["state"] | "", cursor: string) =>
  useQuery({ queryKey: [...operationsKey, "jobs", type, state, cursor], queryFn: ({ signal }) => api.loadJobs(type, state, cursor, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery });

export const useSchedules = () => useQuery({ queryKey: [...operationsKey, "schedules"], queryFn: ({ signal }) => api.loadSchedules(signal), refetchInterval: lookEvery });

export const useHealth = (every = readEvery, enabled = true) =>
  useQuery({ queryKey: [...operationsKey, "health"], queryFn: ({ signal }) => api.loadHealth(signal), refetchInterval: every, staleTime: 0, retry: false, enabled });

/** Bulk jobs; while one runs, its progress. */
export const useBulk = (enabled = true) =>
  useQuery({
    queryKey: [...operationsKey, "bulk"],
    queryFn: ({ signal }) => api.loadBulk(signal),
    refetchInterval: ({ state }) => (state.data?.some(({ status }) => status === "running") ? 2_000 : lookEvery),
    enabled,
  });

/** How many instances a bulk job would change; null is not known yet. */
export const useBulkCount = (wanted: api.BulkRequest | null) =>
  useQuery({ queryKey: [...operationsKey, "bulk-count", wanted], queryFn: async () => (wanted === null ? null : (await api.createBulk({ ...wanted, dryRun: true })).count), enabled: wanted !== null, retry: false });

/** How many instances are tried for the preview of a migration. */
export const triedMax = 200;

/** What would become of the first instances of a migration; null is not known yet. */
export const useMoveTrial = (workflowId: string, plan: api.Plan | null, filter: Record<string, unknown>) =>
  useQuery({
    queryKey: [...operationsKey, "trial", workflowId, plan, filter],
    queryFn: async () => (plan === null ? null : await api.migrate(workflowId, { plan: { ...plan }, filter, dryRun: true, limit: triedMax })),
    enabled: plan !== null,
    retry: false,
  });

export const useUsers = (cursor: string) => useQuery({ queryKey: [...operationsKey, "users", cursor], queryFn: ({ signal }) => api.loadUsers(cursor, signal), placeholderData: keepPreviousData });

export const useUser = (userId: string) => useQuery({ queryKey: [...operationsKey, "user", userId], queryFn: ({ signal }) => api.loadUser(userId, signal), retry: false });

export const useRoles = () => useQuery({ queryKey: [...operationsKey, "roles"], queryFn: ({ signal }) => api.loadRoles(signal) });

export const useCredentials = (kind: api.CredentialKind, user: string, cursor: string) =>
  useQuery({ queryKey: [...operationsKey, kind, user, cursor], queryFn: ({ signal }) => api.loadCredentials(kind, user, cursor, signal), placeholderData: keepPreviousData, retry: false });

/** The audit log, the newest row first; a page may be empty while more follow. */
export const useAudit = (query: api.AuditQuery) =>
  useInfiniteQuery({
    queryKey: [...operationsKey, "audit", query],
    queryFn: ({ pageParam, signal }) => api.loadAudit(query, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    retry: false,
  });

export const useLoad = () => useQuery({ queryKey: [...operationsKey, "load"], queryFn: ({ signal }) => api.loadLoad(signal), refetchInterval: 3 * lookEvery });

export const useBackups = () => useQuery({ queryKey: [...operationsKey, "backups"], queryFn: ({ signal }) => api.loadBackups(signal), refetchInterval: 6 * lookEvery });

export const useExports = (enabled = true) => useQuery({ queryKey: [...operationsKey, "exports"], queryFn: ({ signal }) => api.loadExports(signal), refetchInterval: lookEvery, enabled });
