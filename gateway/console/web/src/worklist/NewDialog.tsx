import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor } from "../api/http";
import { type Kind, loadTemplate } from "../api/portal";
import { noWorkflow } from "../api/runtime";
import type { Role, TemplateChoice } from "../api/types";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { LoadFault, Notice, Skeleton } from "../kit/Notice";
import { go } from "../navigate";
import { beginPath } from "../route";
import { type RolesQuery, useTemplate, useTemplates } from "./queries";

interface NewDialogProps {
  kind: Kind;
  roles: RolesQuery;
  onClose: () => void;
}

/** Role, template, and the workflow when there are several: and the new form's page opens. */
export default function NewDialog({ kind, roles, onClose }: NewDialogProps) {
  const { t } = useTranslation();
  const own = roles.data?.[kind === "forms" ? "formRoles" : "checklistRoles"] ?? [];
  return (
    <Dialog title={kind === "forms" ? t("create.form") : t("create.checklist")} onClose={onClose}>
      {roles.isPending && <Skeleton />}
      {roles.isError && !roles.data && <LoadFault fault={roles.error} retry={() => void roles.refetch()} />}
      {roles.data && own.length === 0 && <Notice tone="info" title={t("create.noRole")} />}
      {own.length > 0 && <NewForm kind={kind} roles={own} onClose={onClose} />}
    </Dialog>
  );
}

function NewForm({ kind, roles, onClose }: { kind: Kind; roles: Role[]; onClose: () => void }) {
  const { t } = useTranslation();
  const [roleId, setRoleId] = useState(roles[0]?.id ?? "");
  const templates = useTemplates(kind, roleId);
  const [chosen, setChosen] = useState("");
  const [chosenWorkflow, setChosenWorkflow] = useState("");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState("");

  const list = templates.data ?? [];
  const template = list.find((each) => each.formId === chosen) ?? (list.length === 1 ? list[0] : undefined);
  const bound = useTemplate(kind === "forms" ? (template?.formId ?? "") : "");
  const choices = bound.data?.workflows ?? [];
  const workflow = choices.find((each) => each.id === chosenWorkflow) ?? choices[0];

  /** Opens the page of a form that is not made yet: it is when something is typed into it. */
  const begin = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) {
      return;
    }
    if (!template) {
      setFault(kind === "forms" ? t("create.selectForm") : t("create.selectChecklist"));
      return;
    }
    if (kind === "checklists") {
      go(beginPath(template.formId, noWorkflow, true));
      return;
    }
    setBusy(true);
    setFault("");
    try {
      const shown = bound.data;
      const { workflows, needsWorkflow } = shown ?? (await loadTemplate("form", template.formId)); // who is quick is ahead of the answer
      const through = shown ? workflow : workflows[0];
      if (!shown && workflows.length > 1) {
        void bound.refetch();
        setFault(t("create.selectWorkflow"));
      } else if (needsWorkflow && !through) {
        setFault(t("create.notAllowed"));
      } else {
        go(beginPath(template.formId, through?.id ?? noWorkflow, false));
        return;
      }
    } catch (cause) {
      setFault(messageFor(cause));
    }
    setBusy(false);
  };

  return (
    <form className="stack" onSubmit={begin} noValidate>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      {roles.length > 1 && (
        <label className="field">
          <span className="label">{t("create.role")}</span>
          <select value={roleId} onChange={(event) => setRoleId(event.target.value)}>
            {roles.map((role) => (
              <option key={role.id} value={role.id}>
                {role.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {templates.isPending && <Skeleton />}
      {templates.isError && !templates.data && <LoadFault fault={templates.error} retry={() => void templates.refetch()} />}
      {templates.data && list.length === 0 && <Notice tone="info" title={t("create.noTemplates")} />}
      {list.length > 0 && <TemplateList title={kind === "forms" ? t("create.kindForm") : t("create.kindChecklist")} templates={list} chosen={template?.formId ?? ""} onChoose={setChosen} />}
      {choices.length > 1 && (
        <label className="field">
          <span className="label">{t("create.workflow")}</span>
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
        <Button onPress={onClose}>{t("cancel")}</Button>
        <Button type="submit" kind="main" isDisabled={busy || list.length === 0}>
          {t("create.create")}
        </Button>
      </div>
    </form>
  );
}

interface TemplateListProps {
  title: string;
  templates: TemplateChoice[];
  chosen: string;
  onChoose: (formId: string) => void;
}

function TemplateList({ title, templates, chosen, onChoose }: TemplateListProps) {
  return (
    <fieldset className="choices">
      <legend className="label">{title}</legend>
      {templates.map((template) => (
        <label key={template.formId} className="choice">
          <input type="radio" name="template" checked={template.formId === chosen} onChange={() => onChoose(template.formId)} />
          <span>
            <span className="choice-name">{template.name}</span>
            {template.description !== "" && <span className="choice-text">{template.description}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
