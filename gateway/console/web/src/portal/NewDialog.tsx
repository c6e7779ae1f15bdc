import { type FormEvent, useCallback, useState } from "react";
import { messageFor, RetryKeys } from "../api/http";
import { createChecklist, createForm, type Kind, loadTemplates, loadWorkflowsOf } from "../api/portal";
import { noWorkflow } from "../api/runtime";
import type { Role, RoleInfo, TemplateChoice, WorkflowsOf } from "../api/types";
import { go } from "../navigate";
import { runtimePath } from "../route";
import { Dialog } from "../ui/Dialog";
import { LoadFault, Notice, Skeleton } from "../ui/Notice";
import { type Loading, useLoaded } from "../ui/useLoaded";

const unbound: WorkflowsOf = { workflows: [], needsWorkflow: false };

interface NewDialogProps {
  kind: Kind;
  roles: Loading<RoleInfo>;
  onClose: () => void;
}

/** Role, template, and the workflow when there are several: and the new form's page opens. */
export function NewDialog({ kind, roles, onClose }: NewDialogProps) {
  const one = kind === "forms" ? "form" : "checklist";
  const { loaded, reload } = roles;
  const own = loaded.state === "ready" ? (kind === "forms" ? loaded.value.formRoles : loaded.value.checklistRoles) : [];
  return (
    <Dialog title={`New ${one}`} onClose={onClose}>
      {loaded.state === "loading" && <Skeleton label="Loading roles" />}
      {loaded.state === "failed" && <LoadFault message={messageFor(loaded.fault)} retry={reload} />}
      {loaded.state === "ready" && own.length === 0 && <Notice tone="info" title={`You do not have a role that can create a ${one}.`} />}
      {own.length > 0 && <NewForm kind={kind} roles={own} onClose={onClose} />}
    </Dialog>
  );
}

function NewForm({ kind, roles, onClose }: { kind: Kind; roles: Role[]; onClose: () => void }) {
  const [roleId, setRoleId] = useState(roles[0]?.id ?? "");
  const templates = useLoaded(useCallback((signal: AbortSignal) => loadTemplates(kind, roleId, signal), [kind, roleId]));
  const [chosen, setChosen] = useState<TemplateChoice | null>(null);
  const [chosenWorkflow, setChosenWorkflow] = useState("");
  const [busy, setBusy] = useState(false);
  const [keys] = useState(() => new RetryKeys());
  const [fault, setFault] = useState("");

  const list = templates.loaded.state === "ready" ? templates.loaded.value : [];
  const template = list.find((each) => each.formId === chosen?.formId) ?? (list.length === 1 ? list[0] : undefined);
  const formId = kind === "forms" ? (template?.formId ?? "") : "";
  const bound = useLoaded(useCallback((signal: AbortSignal) => (formId === "" ? Promise.resolve(unbound) : loadWorkflowsOf(formId, signal)), [formId]));
  const choices = bound.loaded.state === "ready" ? bound.loaded.value.workflows : [];
  const workflow = choices.find((each) => each.id === chosenWorkflow) ?? choices[0];

  const create = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) {
      return;
    }
    if (!template) {
      setFault(`Select a ${kind === "forms" ? "form" : "checklist"}.`);
      return;
    }
    setBusy(true);
    setFault("");
    try {
      const stop = await begin(template);
      setBusy(stop === "");
      setFault(stop);
    } catch (cause) {
      setBusy(false);
      setFault(messageFor(cause));
    }
  };

  /** Creates and goes there. Returns what must be done first, if anything. */
  const begin = async (of: TemplateChoice): Promise<string> => {
    if (kind === "checklists") {
      go(runtimePath(of.formId, noWorkflow, await createChecklist(of.formId, keys)));
      return "";
    }
    const shown = bound.loaded.state === "ready" ? bound.loaded.value : null;
    const { workflows, needsWorkflow } = shown ?? (await loadWorkflowsOf(of.formId)); // who is quick is ahead of the answer
    if (!shown && workflows.length > 1) {
      bound.reload();
      return "Select a workflow.";
    }
    const through = shown ? workflow : workflows[0];
    if (needsWorkflow && !through) {
      return "You are not allowed to start the workflow of this form.";
    }
    go(runtimePath(of.formId, through?.id ?? noWorkflow, await createForm(of.formId, through?.id ?? "", keys)));
    return "";
  };

  return (
    <form className="stack" onSubmit={create} noValidate>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      {roles.length > 1 && (
        <label className="field">
          <span className="label">Role</span>
          <select value={roleId} onChange={(event) => setRoleId(event.target.value)}>
            {roles.map((role) => (
              <option key={role.id} value={role.id}>
                {role.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {templates.loaded.state === "loading" && <Skeleton label="Loading templates" />}
      {templates.loaded.state === "failed" && <LoadFault message={messageFor(templates.loaded.fault)} retry={templates.reload} />}
      {templates.loaded.state === "ready" && list.length === 0 && <Notice tone="info" title="There are no templates for this role." />}
      {list.length > 0 && <TemplateList kind={kind} templates={list} chosen={template?.formId ?? ""} onChoose={setChosen} />}
      {choices.length > 1 && (
        <label className="field">
          <span className="label">Workflow</span>
          <select value={workflow?.id} onChange={(event) => setChosenWorkflow(event.target.value)}>
            {choices.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
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
