import type { Task } from "../api/tasks";
import type { Delivery, Incident, RunningTimer, Schedule } from "./api";
import { candidatesText } from "./names";
import type { Translate } from "./text";

// What is stuck, put together where it has the same cause. Pure.

export type Cause = "incident" | "expression" | "delivery" | "timer" | "task" | "schedule";

/** Things that are stuck for the same reason. */
export interface Stuck {
  key: string;
  cause: Cause;
  workflowId: string;
  /** What it is of: the event, the delivery, the task or the schedule as people call it. */
  name: string;
  /** Why; empty where that is the time that has passed. */
  error: string;
  /** Where a delivery goes, or who has or may take a task. */
  whom: string;
  count: number;
  /** The time from which it is stuck, of the one that waits longest. */
  since: string;
  /** Those that can be retried. */
  ids: string[];
  /** An instance, where there is only one. */
  instanceId: string;
}

interface One extends Omit<Stuck, "count" | "ids"> {
  id?: string;
  times?: number;
}

/** Puts together what has the same key; what waits longest comes first. */
export function grouped(all: readonly One[]): Stuck[] {
  const groups = new Map<string, Stuck>();
  for (const { id, times = 1, ...one } of all) {
    const before = groups.get(one.key);
    const ids = id === undefined ? [] : [id];
    if (!before) {
      groups.set(one.key, { ...one, count: times, ids });
      continue;
    }
    before.count += times;
    before.ids.push(...ids);
    before.since = before.since < one.since ? before.since : one.since;
    before.instanceId = before.instanceId === one.instanceId ? before.instanceId : "";
  }
  return [...groups.values()].toSorted((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}

/** Where the list of those that are stuck goes on, and what is on this page of it. */
interface StuckPage {
  found: readonly One[];
  next?: string | null | undefined;
}

/** The ids of all that can be retried of a group, from every page of its list. */
export async function allIds(key: string, load: (cursor: string) => Promise<StuckPage>): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null | undefined = "";
  do {
    const page: StuckPage = await load(cursor);
    ids.push(...page.found.flatMap((one) => (one.key === key && one.id !== undefined ? [one.id] : [])));
    cursor = page.next;
  } while (cursor);
  return [...new Set(ids)];
}

const keyOf = (...parts: string[]) => JSON.stringify(parts);

export const stuckIncidents = (list: readonly Incident[], nameOf: (of: Incident) => string): One[] =>
  list.map((of) => {
    const { workflowId, error, instanceId } = of;
    const [cause, name]: [Cause, string] = [of.kind ? "expression" : "incident", nameOf(of)];
    return { key: keyOf(cause, workflowId, name, error), cause, workflowId, name, error, whom: of.file ? `${of.file}:${of.line ?? 1}` : "", since: of.first ?? of.ts, instanceId, ...(of.kind ? { times: of.count ?? 1 } : { id: of.id }) };
  });

export const stuckDeliveries = (list: readonly Delivery[], nameOf: (of: Delivery) => string): One[] =>
  list.map((of) => {
    const [name, error] = [nameOf(of), [of.lastStatus ? String(of.lastStatus) : "", of.lastError].filter((part) => part !== "").join(": ")];
    return { key: keyOf("delivery", of.workflowId, name, error), cause: "delivery", workflowId: of.workflowId, name, error, whom: of.url ?? "", since: of.created, instanceId: of.instanceId, id: of.id };
  });

/** Tasks whose due time has passed. whoOf says who has one, or who may take it. */
export const overdueTasks = (list: readonly Task[], now: string, whoOf: (of: Task) => string): One[] =>
  list.flatMap((of) => {
    const whom = whoOf(of);
    return of.due === null || of.due >= now ? [] : [{ key: keyOf("task", of.workflowId, of.title, whom), cause: "task", workflowId: of.workflowId, name: of.title, error: "", whom, since: of.due, instanceId: of.instanceId }];
  });

/** A timer is late when it should have fired this long ago. */
const lateMilliseconds = 60_000;

export const lateTimers = (list: readonly RunningTimer[], now: string, nameOf: (of: RunningTimer) => string): One[] =>
  list
    .filter(({ due }) => Date.parse(due) < Date.parse(now) - lateMilliseconds)
    .map((of) => ({ key: keyOf("timer", of.workflowId, nameOf(of)), cause: "timer", workflowId: of.workflowId, name: nameOf(of), error: "", whom: "", since: of.due, instanceId: of.instanceId }));

export const failedSchedules = (list: readonly Schedule[], now: string): One[] =>
  list
    .filter(({ lastError }) => lastError !== "")
    .map((of) => ({ key: keyOf("schedule", of.workflowId, of.name), cause: "schedule", workflowId: of.workflowId, name: of.name, error: of.lastError, whom: "", since: of.last ?? now, instanceId: "" }));

/** The tasks that wait for the same person, or for the same candidates. */
export interface Waiting {
  who: string;
  /** The login name of who has them, empty for tasks that nobody has. */
  user: string;
  count: number;
  overdue: number;
  oldest: string;
}

/** Whom tasks wait for, who has waited longest first. */
export function waitingFor(tasks: readonly Task[], now: string, t: Translate): Waiting[] {
  const people = new Map<string, Waiting>();
  for (const task of tasks) {
    const user = task.assignee ?? "";
    const who = user === "" ? candidatesText(task, t) : (task.assigneeName ?? user);
    const key = JSON.stringify([user, user === "" ? who : ""]);
    const of = people.get(key) ?? { who, user, count: 0, overdue: 0, oldest: task.created };
    people.set(key, { ...of, count: of.count + 1, overdue: of.overdue + (task.due !== null && task.due < now ? 1 : 0), oldest: of.oldest < task.created ? of.oldest : task.created });
  }
  return [...people.values()].toSorted((a, b) => (a.oldest < b.oldest ? -1 : 1));
}
