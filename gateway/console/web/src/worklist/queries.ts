import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type FormQuery, type Kind, loadForms, loadRoles, loadTemplate, loadTemplates, loadWorkflows } from "../api/portal";
import { loadPresentation } from "../api/workflow";
import { language } from "../text";

// What the work page asks the service, kept while one goes back and forth.

const minute = 60_000;
/** How often lists are asked for all the same: a stream can be away, and does not tell everything. */
export const lookEvery = 30_000;

export const useRoles = (enabled: boolean) => useQuery({ queryKey: ["roles"], queryFn: ({ signal }) => loadRoles(signal), enabled, staleTime: minute });
export type RolesQuery = ReturnType<typeof useRoles>;

export const formsQuery = (query: FormQuery) => ({ queryKey: ["forms", query, language()], queryFn: ({ signal }: { signal: AbortSignal }) => loadForms(query, signal) });

/** Others move workflows on, and programs create what is the caller's: no stream tells of either. */
export const useForms = (query: FormQuery) => useQuery({ ...formsQuery(query), placeholderData: keepPreviousData, refetchInterval: lookEvery });

/** The workflows that the caller may create. */
export const useWorkflows = (enabled: boolean) => useQuery({ queryKey: ["workflows"], queryFn: ({ signal }) => loadWorkflows(signal), enabled, staleTime: 5 * minute });

export const useTemplates = (kind: Kind, roleId: string) =>
  useQuery({ queryKey: ["templates", kind, roleId, language()], queryFn: ({ signal }) => loadTemplates(kind, roleId, signal), placeholderData: keepPreviousData });

/** What a form is made of, and with which workflows. */
export const useTemplate = (formId: string) =>
  useQuery({ queryKey: ["template", formId, language()], queryFn: ({ signal }) => loadTemplate("form", formId, signal), enabled: formId !== "" });

/** What people call the parts of a workflow; none for the empty id. */
export const presentationQuery = (workflowId: string) => ({
  queryKey: ["presentation", workflowId, language()],
  queryFn: ({ signal }: { signal: AbortSignal }) => loadPresentation(workflowId, 0, signal),
  enabled: workflowId !== "",
  staleTime: 5 * minute,
  retry: false,
});

export const usePresentation = (workflowId: string) => useQuery(presentationQuery(workflowId));
