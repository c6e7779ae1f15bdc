import type { Form, Presentation, Status } from "../api/types";
import { readable } from "../words";

// How people see the status of a form. Pure.

type Seen = Pick<Status, "nodeId" | "label" | "tone">;

/** The workflow that a form is bound to, empty when it is bound to none. */
export function formWorkflow(form: Form): string {
  return form.formType === "WorkflowForm" ? decodeURIComponent(form.fullPath.split("/")[2] ?? "") : "";
}

/**
 * The status as the list has it, else with the labels of the workflow's definition,
 * else with readable names of nodes. Of a form without a workflow there is none.
 */
export function statusOf(form: Form, workflow: Presentation | undefined): Seen[] {
  if (form.states) {
    return form.states;
  }
  if (form.formType !== "WorkflowForm" || form.status === "") {
    return [];
  }
  return form.status.split(", ").map((nodeId) => {
    const node = workflow?.nodes.find((each) => each.nodeId === nodeId);
    return { nodeId, label: node?.label ?? readable(nodeId), tone: node?.tone ?? "neutral" };
  });
}

/** The most columns that a list has of its own. */
const columnsMax = 3;

/** The columns of a list whose forms are all of one workflow; of others none. */
export function sharedColumns(forms: Form[]): { path: string; label: string }[] {
  const workflow = forms[0] ? formWorkflow(forms[0]) : "";
  return workflow !== "" && forms.every((form) => formWorkflow(form) === workflow) ? (forms[0]?.columns ?? []).slice(0, columnsMax) : [];
}
