import { keepPreviousData, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { followStream } from "../api/stream";
import { loadTasks, loadTaskWorkflows, type Scope, type TaskQuery, tasksWatchAddress } from "../api/tasks";
import { language } from "../text";
import { countAsked } from "./asked";
import { lookEvery, presentationQuery } from "./queries";

/** How long changes are gathered before the lists are asked for again. */
const gather = 400;

export const tasksQuery = (query: TaskQuery) => ({ queryKey: ["tasks", query, language()], queryFn: ({ signal }: { signal: AbortSignal }) => loadTasks(query, signal) });

export const useTasks = (query: TaskQuery) => useQuery({ ...tasksQuery(query), placeholderData: keepPreviousData, refetchInterval: lookEvery });

/** How much waits for the caller, for the tab and the title. */
export const useTaskCount = () => useTasks(countAsked);

/** The workflows that the caller has tasks of, all of them and not only those of a page. */
export const useTaskWorkflows = (scope: Scope, enabled: boolean) =>
  useQuery({ queryKey: ["taskWorkflows", scope], queryFn: ({ signal }) => loadTaskWorkflows(scope, signal), enabled, staleTime: 60_000, retry: false });

/** What workflows are called, as far as it is known yet. */
export const useWorkflowNames = (ids: string[]) => useQueries({ queries: ids.map(presentationQuery) }).map((query) => query.data?.name);

/** Follows what comes and goes while the page is in sight, and has the lists asked for again. A page that follows something else is not enabled. */
export function useTaskWatch(enabled = true): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!enabled) {
      return;
    }
    let close = () => {};
    let timer: number | undefined;
    const look = () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => {
        void queries.invalidateQueries({ queryKey: ["tasks"] });
        void queries.invalidateQueries({ queryKey: ["forms"] });
      }, gather);
    };
    const follow = (wasAway: boolean) => {
      close();
      if (document.visibilityState !== "visible") {
        return;
      }
      close = followStream(tasksWatchAddress(), wasAway, (source) => {
        // "open": something may have come before it, or while it was away.
        for (const kind of ["open", "tasks"]) {
          source.addEventListener(kind, look);
        }
      });
    };
    const hide = () => close();
    const sightChanged = () => follow(true);
    follow(false);
    document.addEventListener("visibilitychange", sightChanged);
    window.addEventListener("pagehide", hide);
    return () => {
      document.removeEventListener("visibilitychange", sightChanged);
      window.removeEventListener("pagehide", hide);
      window.clearTimeout(timer);
      close();
    };
  }, [queries, enabled]);
}
