import { client, value } from "./client";
import { RetryKeys } from "./http";
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


/** The sort order comes from the address, and the service refuses unknown ones. */
export const loadTasks = ({ sort, ...query }: TaskQuery, signal?: AbortSignal): Promise<TaskList> =>
  value(client.GET("/workflow/api/v1/tasks", { params: { query: { ...query, sort: sort as "due", count: "true" } }, signal }));

export type TaskAction = "claim" | "release" | "assign";

/**
 * Claims, gives back, or gives to another candidate. Refused with 409 when somebody
 * else has it, 404 when it is gone, 400 when "to" is no candidate.
 */
export const changeTask = (taskId: string, action: TaskAction, to?: string): Promise<Task> => value(client.POST("/workflow/api/v1/task", { body: { taskId, action, to } }));

/** The most workflows that are looked for, one request each. */
const workflowsMax = 40;
/** How often a page without a task is followed by the next one. */
const emptyPagesMax = 20;

/** The workflows that the caller has tasks of: after each that is known, one of another is asked for. */
export async function loadTaskWorkflows(scope: Scope, signal?: AbortSignal): Promise<string[]> {
  const known: string[] = [];
  let cursor = "";
  for (let empty = 0; known.length < workflowsMax && empty < emptyPagesMax; ) {
    const query = { scope, limit: 1, filter: JSON.stringify({ workflowId: { $nin: known } }), cursor };
    const { tasks, next } = await value(client.GET("/workflow/api/v1/tasks", { params: { query }, signal }));
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
export const tasksWatchAddress = () => new URL("workflow/api/v1/tasks/watch", document.baseURI).href;

export type Summary = Schemas["Summary"];

export const loadSummary = (of: Instance, signal?: AbortSignal): Promise<Summary> => value(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}/summary", { params: { path: of }, signal }));

export type Activity = Schemas["Activity"];
export type ActivityPage = Schemas["ActivityList"];

export const loadActivity = (of: Instance, cursor: string, signal?: AbortSignal): Promise<ActivityPage> =>
  value(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}/activity", { params: { path: of, query: { order: "desc", limit: 30, cursor } }, signal }));

const commentKeys = new RetryKeys();

/** Writes a comment. Sent again after a lost answer, it is there once. */
export async function addComment(of: Instance, text: string): Promise<void> {
  await commentKeys.once(JSON.stringify([of, text]), (key) =>
    value(client.POST("/workflow/api/v1/instance/{workflowId}/{instanceId}/comments", { params: { path: of, header: { "Idempotency-Key": key } }, body: { text } })),
  );
}

/** The statechart as an image, which cannot run or load anything: now (0), or as after an entry of the history. */
export async function loadDiagram(of: Instance, at: number, signal?: AbortSignal): Promise<string> {
  const query = { at: at || undefined };
  const svg = await value(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}/diagram", { params: { path: of, query }, signal, parseAs: "text", headers: { Accept: "image/svg+xml, application/json" } }));
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}
