import { useCallback } from "react";
import { type Instance, noWorkflow } from "../api/runtime";
import type { Watched } from "../api/types";
import { type History, loadEvents, loadHistory, type Sendable } from "../api/workflow";
import { type Loaded, useLoaded } from "../kit/useLoaded";
import { withEntry } from "./historyEntries";
import { useWatch } from "./useWatch";

export interface WorkflowState {
  events: Loaded<Sendable>;
  history: Loaded<History>;
  /** The page is told of changes at once. */
  live: boolean;
  /** Loads both again. */
  reload: () => void;
}

const nothing: Sendable = { events: [], tag: "" };
const noHistory: History = { entries: [], cut: false };

/**
 * What an instance's workflow says, kept up to date. onMoved is called when the
 * instance has moved on, or may have. A plain form has no workflow to ask.
 */
export function useWorkflow(instance: Instance, onMoved: () => void): WorkflowState {
  const bound = instance.workflowId !== noWorkflow;
  const events = useLoaded(useCallback((signal: AbortSignal) => (bound ? loadEvents(instance, signal) : Promise.resolve(nothing)), [bound, instance]));
  const history = useLoaded(useCallback((signal: AbortSignal) => (bound ? loadHistory(instance, signal) : Promise.resolve(noHistory)), [bound, instance]));
  const { reload: reloadEvents } = events;
  const { reload: reloadHistory } = history;

  const reload = useCallback(() => {
    reloadEvents();
    reloadHistory();
  }, [reloadEvents, reloadHistory]);

  const live = useWatch(bound ? instance : null, {
    onEntry: (watched: Watched) => {
      if (history.loaded.state === "ready") {
        const next = withEntry(history.loaded.value, watched);
        if (next === "known") {
          return;
        }
        if (next === "gap") {
          reloadHistory();
        } else {
          history.replace(next);
        }
      }
      reloadEvents();
      onMoved();
    },
    onLook: () => {
      reload();
      onMoved();
    },
  });

  return { events: events.loaded, history: history.loaded, live, reload };
}
