import { ask, askText, RetryKeys } from "./http";
import type { components } from "./openapi";
import type { Instance } from "./runtime";

// What waits for people, and what an instance's page shows.

type Schemas = components["schemas"];

export type TaskEvent = Schemas["TaskEvent"];
export type Task = Schemas["Task"];
export type TaskList = Schemas["TaskList"];

/** "every" is for those who run the service. */
export type Scope = "mine" | "open" | "all" | "done" | "every";

export interface TaskQuery {
  scope: Scope;
  q: string;
  sort: string;
  workflowId: string;
  cursor: string;
  limit: number;
  /** statemachine/filter/FILTER.md, over the fields of a task. */
  filter?: string;
}

const api = "workflow/api/v1";
const path = (of: Instance) => `${api}/instance/${encodeURIComponent(of.workflowId)}/${encodeURIComponent(of.instanceId)}`;

export async function loadTasks(query: TaskQuery, signal?: AbortSignal): Promise<TaskList> {
  const { limit, ...texts } = query;
  const asked = new URLSearchParams({ limit: String(limit), count: "true" });
  Object.entries(texts).forEach(([name, value]) => value && asked.set(name, value));
  return (await ask<TaskList>(`${api}/tasks?${asked}`, { signal })).value;
}

export type TaskAction = "claim" | "release" | "assign";

/**
 * Claims, gives back, or gives to another candidate. Refused with 409 when somebody
 * else has it, 404 when it is gone, 400 when "to" is no candidate.
 */
export async function changeTask(taskId: string, action: TaskAction, to?: string): Promise<Task> {
  return (await ask<Task>(`${api}/task`, { method: "POST", body: to === undefined ? { taskId, action } : { taskId, action, to } })).value;
}

/** The most workflows that are looked for, one request each. */
const workflowsMax = 40;
/** How often a page without a task is followed by the next one. */
const emptyPagesMax = 20;

/** The workflows that the caller has tasks of: after each that is known, one of another is asked for. */
export async function loadTaskWorkflows(scope: Scope, signal?: AbortSignal): Promise<string[]> {
  const known: string[] = [];
  let cursor = "";
  for (let empty = 0; known.length < workflowsMax && empty < emptyPagesMax; ) {
    const asked = new URLSearchParams({ scope, limit: "1", filter: JSON.stringify({ workflowId: { $nin: known } }) });
    if (cursor !== "") {
      asked.set("cursor", cursor);
    }
    const { tasks, next } = (await ask<TaskList>(`${api}/tasks?${asked}`, { signal })).value;
    const [task] = tasks;
    if (task) {
      known.push(task.workflowId);
      cursor = ""; // the filter is another one, and so is the list
    } else if (next === null) {
      break;
    } else {
      cursor = next;
      empty++;
    }
  }
  return known.toSorted();
}

/** The address of the stream of what comes and goes for the caller. */
export const tasksWatchAddress = () => new URL(`${api}/tasks/watch`, document.baseURI).href;

export type Summary = Schemas["Summary"];

export async function loadSummary(of: Instance, signal?: AbortSignal): Promise<Summary> {
  return (await ask<Summary>(`${path(of)}/summary`, { signal })).value;
}

export type Activity = Schemas["Activity"];
export type ActivityPage = Schemas["ActivityList"];

export async function loadActivity(of: Instance, cursor: string, signal?: AbortSignal): Promise<ActivityPage> {
  const asked = new URLSearchParams({ order: "desc", limit: "30", ...(cursor === "" ? {} : { cursor }) });
  return (await ask<ActivityPage>(`${path(of)}/activity?${asked}`, { signal })).value;
}

const commentKeys = new RetryKeys();

/** Writes a comment. Sent again after a lost answer, it is there once. */
export async function addComment(of: Instance, text: string): Promise<void> {
  const to = `${path(of)}/comments`;
  await commentKeys.once(JSON.stringify([to, text]), (key) => ask(to, { method: "POST", body: { text }, headers: { "Idempotency-Key": key } }));
}

/** The statechart as an image, which cannot run or load anything. */
export async function loadDiagram(of: Instance, signal?: AbortSignal): Promise<string> {
  const svg = await askText(`${path(of)}/diagram`, { signal, headers: { Accept: "image/svg+xml, application/json" } });
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}
