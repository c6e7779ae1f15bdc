import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { loadTasks, type TaskQuery } from "../api/tasks";
import { loadPresentation } from "../api/workflow";
import { language } from "../text";
import { countInstances, type DeliveryState, type InstanceQuery, loadChart, loadHealth, loadIncidents, loadInstances, loadOutbox, loadSchedules, loadTimers, loadWorkflows } from "./api";

/** How often what happens by itself is asked for while the page is in sight. */
const lookEvery = 10_000;
/** How often the load is read. */
export const readEvery = 3_000;

/** The start of every key: all of it is asked for again after a change. */
export const operationsKey = ["operations"];

export const useWorkflows = () => useQuery({ queryKey: [...operationsKey, "workflows"], queryFn: ({ signal }) => loadWorkflows(signal) });

export const usePresentation = (workflowId: string, version = 0) =>
  useQuery({ queryKey: [...operationsKey, "presentation", workflowId, version, language()], queryFn: ({ signal }) => loadPresentation(workflowId, version, signal), enabled: workflowId !== "", retry: false });

export const useChart = (workflowId: string, version: number) =>
  useQuery({ queryKey: [...operationsKey, "chart", workflowId, version, language()], queryFn: ({ signal }) => loadChart(workflowId, version, signal), refetchInterval: 3 * lookEvery, placeholderData: keepPreviousData });

export const useInstances = (query: InstanceQuery) =>
  useQuery({ queryKey: [...operationsKey, "instances", query, language()], queryFn: ({ signal }) => loadInstances(query, signal), placeholderData: keepPreviousData, enabled: query.workflowId !== "" });

export const useInstanceCount = (workflowId: string, filter: string) =>
  useQuery({ queryKey: [...operationsKey, "count", workflowId, filter], queryFn: ({ signal }) => countInstances(workflowId, filter, signal), retry: false, enabled: workflowId !== "" });

/** The tasks of everybody. */
export const useEveryTask = (query: TaskQuery) =>
  useQuery({ queryKey: [...operationsKey, "tasks", query, language()], queryFn: ({ signal }) => loadTasks(query, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery });

export const useIncidents = (cursor: string, enabled = true) =>
  useQuery({ queryKey: [...operationsKey, "incidents", cursor], queryFn: ({ signal }) => loadIncidents(cursor, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery, enabled });

export const useOutbox = (state: DeliveryState | "", cursor: string, enabled = true) =>
  useQuery({ queryKey: [...operationsKey, "outbox", state, cursor], queryFn: ({ signal }) => loadOutbox(state, cursor, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery, enabled });

export const useTimers = (workflowId: string, cursor: string) =>
  useQuery({ queryKey: [...operationsKey, "timers", workflowId, cursor], queryFn: ({ signal }) => loadTimers(workflowId, cursor, signal), placeholderData: keepPreviousData, refetchInterval: lookEvery });

export const useSchedules = () => useQuery({ queryKey: [...operationsKey, "schedules"], queryFn: ({ signal }) => loadSchedules(signal), refetchInterval: lookEvery });

export const useHealth = () => useQuery({ queryKey: [...operationsKey, "health"], queryFn: ({ signal }) => loadHealth(signal), refetchInterval: readEvery, staleTime: 0, retry: false });
