import type { FormView, WorkflowEvent } from "../api/types";

/**
 * The events to offer as buttons: not those whose guard says no, and not the one
 * that the Submit button of the form sends.
 */
export function offered(events: WorkflowEvent[], view: FormView): WorkflowEvent[] {
  return events.filter((event) => event.guard !== "false" && !(view.editable && event.name === view.template?.submit));
}
