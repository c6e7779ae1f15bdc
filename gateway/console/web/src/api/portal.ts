import { ask, askText, retryKey } from "./http";
import type { Category, Form, RoleInfo, TemplateChoice, WorkflowsOf } from "./types";

/** The two things that a person makes in the portal, as paths spell them. */
export type Kind = "forms" | "checklists";

export const categories: Category[] = ["current", "submitted", "archived"];

/** The three lists of a kind, loaded together so that the tabs can count. */
export async function loadLists(kind: Kind, signal?: AbortSignal): Promise<Record<Category, Form[]>> {
  const [current, submitted, archived] = await Promise.all(
    categories.map((category) => ask<Form[]>(`form-portal/${kind}/my${category}`, { signal })),
  );
  return { current: current?.value ?? [], submitted: submitted?.value ?? [], archived: archived?.value ?? [] };
}

export async function loadRoles(signal?: AbortSignal): Promise<RoleInfo> {
  return (await ask<RoleInfo>("form-portal/role-info", { signal })).value;
}

/** The workflows that a new form of a template can be bound to. */
export async function loadWorkflowsOf(formId: string, signal?: AbortSignal): Promise<WorkflowsOf> {
  return (await ask<WorkflowsOf>(`form-runtime/api/v1/template/form/${encodeURIComponent(formId)}`, { signal })).value;
}

export async function loadTemplates(kind: Kind, roleId: string, signal?: AbortSignal): Promise<TemplateChoice[]> {
  return (await ask<TemplateChoice[]>(`form-portal/${kind}/role/${encodeURIComponent(roleId)}`, { signal })).value;
}

/** Returns the identifier of the new form. An empty workflowId is a plain form. */
export async function createForm(formId: string, workflowId: string): Promise<string> {
  const body = workflowId === "" ? { formId } : { formId, workflowId };
  return (await askText("form-portal/forms/create", create(body))).trim();
}

/** Returns the identifier of the new checklist. */
export async function createChecklist(checklistId: string): Promise<string> {
  return (await askText("form-portal/checklists/create", create({ checklistId }))).trim();
}

function create(body: object) {
  return { method: "POST" as const, body, headers: { Accept: "text/plain, application/json", "Idempotency-Key": retryKey() } };
}
