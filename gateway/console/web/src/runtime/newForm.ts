import { createChecklist, createForm, loadTemplate } from "../api/portal";
import { type Instance, noWorkflow } from "../api/runtime";
import type { Caller, FormView } from "../api/types";

/** What a form is to be made of. */
export interface NewForm {
  formId: string;
  workflowId: string;
  checklist: boolean;
}

/** A form as it is before there is one: what its template asks, and nothing in it. */
export async function loadNew({ formId, workflowId, checklist }: NewForm, caller: Caller, signal?: AbortSignal): Promise<FormView> {
  const { template } = await loadTemplate(checklist ? "checklist" : "form", formId, signal);
  const formType = checklist ? "Checklist" : workflowId === noWorkflow ? "Form" : "WorkflowForm";
  return {
    form: { id: "", formType, formId, submissionId: "", name: template.name, fullPath: "", by: caller.id, when: 0, status: "", role: "" },
    category: "current",
    template,
    data: {},
    draft: null,
    states: [],
    submittedAt: 0,
    editable: true,
  };
}

/** Makes the form. Asked again with the same key, it makes one. */
export async function makeForm({ formId, workflowId, checklist }: NewForm, key: string): Promise<Instance> {
  const instanceId = checklist ? await createChecklist(formId, key) : await createForm(formId, workflowId === noWorkflow ? "" : workflowId, key);
  return { workflowId: checklist ? noWorkflow : workflowId, instanceId };
}
