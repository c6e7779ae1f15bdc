import { ask, askText } from "./http";
import type { Category, FormPage, RoleInfo, TemplateChoice, TemplateView, Workflow } from "./types";

/** The two things that a person makes in the portal, as paths spell them. */
export type Kind = "forms" | "checklists";

export const categories: Category[] = ["current", "submitted", "archived"];

export interface FormQuery {
  kind: "form" | "checklist";
  category: Category;
  q: string;
  /** noWorkflow finds those that are bound to none. */
  workflowId: string;
  sort: string;
  cursor: string;
  limit: number;
}

/** Where a page of the caller's own is: checklists, or else forms with what was created through the interface. */
export function formsAddress({ kind, ...query }: FormQuery): string {
  const asked = new URLSearchParams({ count: "true" });
  Object.entries(query).forEach(([name, value]) => value !== "" && asked.set(name, String(value)));
  return kind === "checklist" ? `form-runtime/api/v1/forms?kind=checklist&${asked}` : `workflow/api/v1/requests?${asked}`;
}

/** A page of what the caller has created, and how many there are in all. */
export async function loadForms(query: FormQuery, signal?: AbortSignal): Promise<FormPage> {
  return (await ask<FormPage>(formsAddress(query), { signal })).value;
}

/** The workflows that the caller may create. It takes no privilege of the portal. */
export async function loadWorkflows(signal?: AbortSignal): Promise<Workflow[]> {
  return (await ask<{ workflows: Workflow[] }>("workflow/api/v1/choices", { signal })).value.workflows;
}

export async function loadRoles(signal?: AbortSignal): Promise<RoleInfo> {
  return (await ask<RoleInfo>("form-portal/role-info", { signal })).value;
}

/** What a new form or checklist asks, and the workflows that it can be bound to. */
export async function loadTemplate(kind: "form" | "checklist", formId: string, signal?: AbortSignal): Promise<TemplateView> {
  return (await ask<TemplateView>(`form-runtime/api/v1/template/${kind}/${encodeURIComponent(formId)}`, { signal })).value;
}

export async function loadTemplates(kind: Kind, roleId: string, signal?: AbortSignal): Promise<TemplateChoice[]> {
  return (await ask<TemplateChoice[]>(`form-portal/${kind}/role/${encodeURIComponent(roleId)}`, { signal })).value;
}

/**
 * Returns the identifier of the new form. An empty workflowId is a plain form.
 * Asked again with the same key, it makes one form.
 */
export function createForm(formId: string, workflowId: string, key: string): Promise<string> {
  return create("form-portal/forms/create", workflowId === "" ? { formId } : { formId, workflowId }, key);
}

/** Returns the identifier of the new checklist; the key is as for createForm. */
export function createChecklist(checklistId: string, key: string): Promise<string> {
  return create("form-portal/checklists/create", { checklistId }, key);
}

async function create(path: string, body: object, key: string): Promise<string> {
  const headers = { Accept: "text/plain, application/json", "Idempotency-Key": key };
  return (await askText(path, { method: "POST", body, headers, keepalive: true })).trim();
}
