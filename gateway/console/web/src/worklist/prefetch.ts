import type { QueryClient } from "@tanstack/react-query";
import { countAsked, formsAsked, tasksAsked } from "./asked";
import { formsQuery } from "./queries";
import { tasksQuery } from "./useTasks";

/**
 * Asks for what the work page shows first, beside the question who is signed in. Where
 * nobody is, the answers are refused like that one, and nobody misses them.
 */
export function prefetchWork(queries: QueryClient, asked: URLSearchParams): void {
  const tab = asked.get("tab") ?? "waiting";
  void queries.prefetchQuery(tasksQuery(countAsked));
  if (tab === "requests" || tab === "checklists") {
    void queries.prefetchQuery(formsQuery(formsAsked(asked, tab === "requests" ? "forms" : "checklists")));
  } else {
    void queries.prefetchQuery(tasksQuery(tasksAsked(asked, tab === "decided")));
  }
}
