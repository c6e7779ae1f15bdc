import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type Kind, loadLists, loadRoles, loadTemplates, loadWorkflowsOf } from "../api/portal";

// What the work page asks the service, kept while one goes back and forth.

export const useRoles = (enabled: boolean) => useQuery({ queryKey: ["roles"], queryFn: ({ signal }) => loadRoles(signal), enabled, staleTime: 60_000 });
export type RolesQuery = ReturnType<typeof useRoles>;

export const listsKey = (kind: Kind) => ["lists", kind];

/** Others move workflows on: asked again when the person comes back to the window. */
export const useLists = (kind: Kind) => useQuery({ queryKey: listsKey(kind), queryFn: ({ signal }) => loadLists(kind, signal) });

export const useTemplates = (kind: Kind, roleId: string) =>
  useQuery({ queryKey: ["templates", kind, roleId], queryFn: ({ signal }) => loadTemplates(kind, roleId, signal), placeholderData: keepPreviousData });

export const useWorkflowsOf = (formId: string) =>
  useQuery({ queryKey: ["workflowsOf", formId], queryFn: ({ signal }) => loadWorkflowsOf(formId, signal), enabled: formId !== "" });
