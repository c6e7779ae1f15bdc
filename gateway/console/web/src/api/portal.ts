import { client, value } from "./client";
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

/** A page of what the caller has created, and how many there are in all: checklists, or else forms with what was created through the interface. */
export function loadForms({ kind, sort, ...rest }: FormQuery, signal?: AbortSignal): Promise<FormPage> {
  const query = { ...rest, sort: sort as "when", count: true }; // it comes from the address, and the service refuses others
  return kind === "checklist" ? value(client.GET("/form-runtime/api/v1/forms", { params: { query: { ...query, kind } }, signal })) : value(client.GET("/workflow/api/v1/requests", { params: { query }, signal }));
}

/** The workflows that the caller may create. It takes no privilege of the portal. */
export async function loadWorkflows(signal?: AbortSignal): Promise<Workflow[]> {
  return (await value(client.GET("/workflow/api/v1/choices", { signal }))).workflows;
}

export const loadRoles = (signal?: AbortSignal): Promise<RoleInfo> => value(client.GET("/form-portal/role-info", { signal }));

/** What a new form or checklist asks, and the workflows that it can be bound to. */
export const loadTemplate = (kind: "form" | "checklist", formId: string, signal?: AbortSignal): Promise<TemplateView> =>
  value(client.GET("/form-runtime/api/v1/template/{kind}/{formId}", { params: { path: { kind, formId } }, signal }));

export const loadTemplates = (kind: Kind, roleId: string, signal?: AbortSignal): Promise<TemplateChoice[]> => value(client.GET(`/form-portal/${kind}/role/{roleId}`, { params: { path: { roleId } }, signal }));

/**
 * Returns the identifier of the new form. An empty workflowId is a plain form.
 * Asked again with the same key, it makes one form.
 */
export async function createForm(formId: string, workflowId: string, key: string): Promise<string> {
  const body = workflowId === "" ? { formId } : { formId, workflowId };
  return (await value(client.POST("/form-portal/forms/create", { body, ...underKey(key) }))).trim();
}

/** Returns the identifier of the new checklist; the key is as for createForm. */
export async function createChecklist(checklistId: string, key: string): Promise<string> {
  return (await value(client.POST("/form-portal/checklists/create", { body: { checklistId }, ...underKey(key) }))).trim();
}

const underKey = (key: string) => ({ parseAs: "text" as const, headers: { Accept: "text/plain, application/json", "Idempotency-Key": key }, keepalive: true });
