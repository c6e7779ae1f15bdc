import { useQuery } from "@tanstack/react-query";
import type { Instance } from "../api/runtime";
import { loadSummary } from "../api/tasks";
import { language } from "../text";

export const instanceKey = (instance: Instance | null) => ["instance", instance?.workflowId, instance?.instanceId];

/** An instance as people see it; nothing is asked for where there is none. */
export const useSummary = (instance: Instance | null) =>
  useQuery({
    queryKey: [...instanceKey(instance), "summary", language()],
    queryFn: ({ signal }) => (instance ? loadSummary(instance, signal) : Promise.reject(new Error("no instance"))),
    enabled: instance !== null,
  });
