import { ask, askText, type RetryKeys } from "./http";
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

/**
 * Returns the identifier of the new form. An empty workflowId is a plain form.
 * Asked again with the same keys after a fault, it makes one form.
 */
export function createForm(formId: string, workflowId: string, keys: RetryKeys): Promise<string> {
  return create("form-portal/forms/create", workflowId === "" ? { formId } : { formId, workflowId }, keys);
}

/** Returns the identifier of the new checklist; keys are as for createForm. */
export function createChecklist(checklistId: string, keys: RetryKeys): Promise<string> {
  return create("form-portal/checklists/create", { checklistId }, keys);
}

function create(path: string, body: object, keys: RetryKeys): Promise<string> {
  return keys.once(path + JSON.stringify(body), async (key) => {
    const headers = { Accept: "text/plain, application/json", "Idempotency-Key": key };
    return (await askText(path, { method: "POST", body, headers })).trim();
  });
}
