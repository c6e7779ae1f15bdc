import type { FormQuery } from "../api/portal";
import { categories, type Kind } from "../api/portal";
import type { TaskQuery } from "../api/tasks";
import { type Caller, privilege } from "../api/types";

// What an address of the work page asks the service for. Pure, so that the question can
// go out before the page is drawn.

export type FormsKey = "requests" | "checklists";
export type TabKey = FormsKey | "waiting" | "decided";

export const kindOf: Record<FormsKey, Kind> = { requests: "forms", checklists: "checklists" };

export const mayCreate = (caller: Caller, kind: Kind) =>
  [privilege.portal, kind === "forms" ? privilege.form : privilege.checklist].every((needed) => caller.privileges.includes(needed));

/**
 * What somebody has created through the interface takes no privilege to be seen. Checklists
 * of earlier days are seen by whoever may not make anything.
 */
export function tabsOf(caller: Caller): TabKey[] {
  const checklists = mayCreate(caller, "checklists") || (caller.privileges.includes(privilege.portal) && !mayCreate(caller, "forms"));
  return ["waiting", "requests", "decided", ...(checklists ? (["checklists"] as const) : [])];
}

const pageSize = 50;
export const scopes = ["all", "mine", "open"] as const;
export const formSorts = ["-when", "when", "name"];

/** The tasks that are shown. */
export function tasksAsked(asked: URLSearchParams, done: boolean): TaskQuery {
  return {
    scope: done ? "done" : (scopes.find((each) => each === asked.get("scope")) ?? "all"),
    q: asked.get("q") ?? "",
    sort: asked.get("sort") ?? "",
    workflowId: asked.get("workflow") ?? "",
    cursor: asked.get("cursor") ?? "",
    limit: pageSize,
  };
}

/** How much waits, for the tab and the title. */
export const countAsked: TaskQuery = { scope: "all", q: "", sort: "", workflowId: "", cursor: "", limit: 1 };

/** The forms that are shown. */
export function formsAsked(asked: URLSearchParams, kind: Kind): FormQuery {
  return {
    kind: kind === "forms" ? "form" : "checklist",
    category: categories.find((name) => name === asked.get("show")) ?? "current",
    q: asked.get("q") ?? "",
    workflowId: asked.get("workflow") ?? "",
    sort: formSorts.find((each) => each === asked.get("sort")) ?? "-when",
    cursor: asked.get("cursor") ?? "",
    limit: pageSize,
  };
}
