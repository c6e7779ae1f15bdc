import { noWorkflow } from "../api/runtime";
import type { Form, Presentation, Status } from "../api/types";
import { readable } from "../words";

// How people see a form, or an instance that is none, and its status. Pure.

type Seen = Pick<Status, "nodeId" | "label" | "tone">;

/** The workflow that a form is bound to, empty when it is bound to none. Only pages of requests name it. */
export function formWorkflow(form: Form): string {
  const id = form.workflowId ?? decodeURIComponent(form.fullPath.split("/")[2] ?? "");
  return id === noWorkflow ? "" : id;
}

/**
 * Before it is submitted, a form's instance knows nothing of what stands in its draft,
 * and can be deleted. An instance that is no form has no draft.
 */
export const isSubmitted = (form: Form) => form.formType === "Instance" || form.submissionId !== "";

export const titleOf = (form: Form) => (isSubmitted(form) && form.title) || form.name;
export const valuesOf = (form: Form) => (isSubmitted(form) && form.columns) || [];

/**
 * The status as the list has it, else with the labels of the workflow's definition,
 * else with readable names of nodes. Of a form without a workflow there is none.
 */
export function statusOf(form: Form, workflow: Presentation | undefined): Seen[] {
  if (form.states) {
    return form.states;
  }
  if (formWorkflow(form) === "" || form.status === "") {
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
