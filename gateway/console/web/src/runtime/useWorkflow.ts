import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import type { Instance } from "../api/runtime";
import { loadEvents, type Sendable } from "../api/workflow";
import { type Loaded, useLoaded } from "../kit/useLoaded";
import { activityKey } from "../instance/ActivityList";
import { useWatch } from "./useWatch";

export interface WorkflowState {
  events: Loaded<Sendable>;
  /** The page is told of changes at once. */
  live: boolean;
  /** Loads the events and what has happened again. */
  reload: () => void;
}

/**
 * What an instance's workflow says, kept up to date. onMoved is called when the
 * instance has moved on, or may have.
 */
export function useWorkflow(instance: Instance, onMoved: () => void): WorkflowState {
  const queries = useQueryClient();
  const events = useLoaded(useCallback((signal: AbortSignal) => loadEvents(instance, signal), [instance]));
  const { reload: reloadEvents } = events;
  const reload = useCallback(() => {
    reloadEvents();
    void queries.invalidateQueries({ queryKey: activityKey(instance) });
  }, [reloadEvents, queries, instance]);
  const look = () => {
    reload();
    onMoved();
  };
  const live = useWatch(instance, { onEntry: look, onLook: look });
  return { events: events.loaded, live, reload };
}
