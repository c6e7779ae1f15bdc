import { type FormEvent, useCallback, useRef, useState } from "react";
import { messageFor, ServiceError } from "../api/http";
import { createChecklist, createForm, type Kind, loadTemplates, loadWorkflows } from "../api/portal";
import { noWorkflow } from "../api/runtime";
import type { Role, RoleInfo, TemplateChoice, Workflow } from "../api/types";
import { go } from "../navigate";
import { runtimePath } from "../route";
import { Dialog } from "../ui/Dialog";
import { LoadFault, Notice, Skeleton } from "../ui/Notice";
import { type Loading, useLoaded } from "../ui/useLoaded";
import { likelyWorkflow } from "./match";

// The value of "choose for me". No identifier begins with a star.
const automatic = "*";

interface NewDialogProps {
  kind: Kind;
  roles: Loading<RoleInfo>;
  onClose: () => void;
}

/** Role, template, workflow: and the new form's page opens. */
export function NewDialog({ kind, roles, onClose }: NewDialogProps) {
  const one = kind === "forms" ? "form" : "checklist";
  const { loaded, reload } = roles;
  const own = loaded.state === "ready" ? (kind === "forms" ? loaded.value.formRoles : loaded.value.checklistRoles) : [];
  return (
    <Dialog title={`New ${one}`} onClose={onClose}>
      {loaded.state === "loading" && <Skeleton label="Loading your roles" />}
      {loaded.state === "failed" && <LoadFault message={messageFor(loaded.fault)} retry={reload} />}
      {loaded.state === "ready" && own.length === 0 && <Notice tone="info" title={`None of your roles may create a ${one}.`} />}
      {own.length > 0 && <NewForm kind={kind} roles={own} onClose={onClose} />}
    </Dialog>
  );
}

function NewForm({ kind, roles, onClose }: { kind: Kind; roles: Role[]; onClose: () => void }) {
  const [roleId, setRoleId] = useState(roles[0]?.id ?? "");
  const templates = useLoaded(useCallback((signal: AbortSignal) => loadTemplates(kind, roleId, signal), [kind, roleId]));
  const workflows = useLoaded(useCallback((signal: AbortSignal) => (kind === "forms" ? loadWorkflows(signal) : Promise.resolve([])), [kind]));
  const choices = workflows.loaded.state === "ready" ? workflows.loaded.value : [];
  const [chosen, setChosen] = useState<TemplateChoice | null>(null);
  const [workflowId, setWorkflowId] = useState(automatic);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  const workflowSelect = useRef<HTMLSelectElement>(null);

  const list = templates.loaded.state === "ready" ? templates.loaded.value : [];
  const template = list.find((each) => each.formId === chosen?.formId) ?? (list.length === 1 ? list[0] : undefined);

  const create = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) {
      return;
    }
    if (!template) {
      setFault(`Choose a ${kind === "forms" ? "form" : "checklist"} first.`);
      return;
    }
    setBusy(true);
    setFault("");
    try {
      const made = kind === "forms" ? await createBound(template, workflowId, choices) : { id: await createChecklist(template.formId), workflowId: "" };
      go(runtimePath(template.formId, made.workflowId || noWorkflow, made.id));
    } catch (cause) {
      setBusy(false);
      setFault(messageFor(cause));
      if (cause instanceof AskWhichWorkflow) {
        setWorkflowId(likelyWorkflow(template, choices) || (choices[0]?.id ?? ""));
        workflowSelect.current?.focus();
      }
    }
  };

  return (
    <form className="stack" onSubmit={create} noValidate>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      {roles.length > 1 && (
        <label className="field">
          <span className="label">As</span>
          <select value={roleId} onChange={(event) => setRoleId(event.target.value)}>
            {roles.map((role) => (
              <option key={role.id} value={role.id}>
                {role.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {templates.loaded.state === "loading" && <Skeleton label="Loading what you can create" />}
      {templates.loaded.state === "failed" && <LoadFault message={messageFor(templates.loaded.fault)} retry={templates.reload} />}
      {templates.loaded.state === "ready" && list.length === 0 && <Notice tone="info" title="There is nothing to create for this role." />}
      {list.length > 0 && <TemplateList kind={kind} templates={list} chosen={template?.formId ?? ""} onChoose={setChosen} />}
      {kind === "forms" && choices.length > 0 && list.length > 0 && (
        <label className="field">
          <span className="label">Workflow</span>
          <select ref={workflowSelect} value={workflowId} onChange={(event) => setWorkflowId(event.target.value)}>
            <option value={automatic}>As the form needs it</option>
            <option value="">(no workflow)</option>
            {choices.map((workflow) => (
              <option key={workflow.id} value={workflow.id}>
                {workflow.name}
              </option>
            ))}
          </select>
        </label>
      )}
      <div className="dialog-foot">
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="button button-main" disabled={busy || list.length === 0}>
          {busy ? "Creating…" : "Create"}
        </button>
      </div>
    </form>
  );
}

interface TemplateListProps {
  kind: Kind;
  templates: TemplateChoice[];
  chosen: string;
  onChoose: (template: TemplateChoice) => void;
}

function TemplateList({ kind, templates, chosen, onChoose }: TemplateListProps) {
  return (
    <fieldset className="choices">
      <legend className="label">{kind === "forms" ? "Form" : "Checklist"}</legend>
      {templates.map((template) => (
        <label key={template.formId} className="choice">
          <input type="radio" name="template" checked={template.formId === chosen} onChange={() => onChoose(template)} />
          <span>
            <span className="choice-name">{template.name}</span>
            {template.description !== "" && <span className="choice-text">{template.description}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** The form belongs to a workflow, and only the person can say to which. */
class AskWhichWorkflow extends Error {}

/**
 * Creates a form. Which templates are bound to which workflows is known to the
 * service alone: left to choose, it is asked for a plain form first, which it
 * refuses (400) when the template needs a workflow.
 */
async function createBound(template: TemplateChoice, workflowId: string, workflows: Workflow[]): Promise<{ id: string; workflowId: string }> {
  if (workflowId !== automatic) {
    return { id: await createForm(template.formId, workflowId), workflowId };
  }
  try {
    return { id: await createForm(template.formId, ""), workflowId: "" };
  } catch (fault) {
    if (!(fault instanceof ServiceError) || fault.status !== 400 || workflows.length === 0) {
      throw fault;
    }
  }
  const only = workflows.length === 1 ? workflows[0] : undefined;
  if (only) {
    return { id: await createForm(template.formId, only.id), workflowId: only.id };
  }
  throw new AskWhichWorkflow("This form goes through a workflow. Choose which one.");
}
