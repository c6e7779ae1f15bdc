import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Task } from "../api/tasks";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { Notice } from "../kit/Notice";

interface AssignDialogProps {
  task: Task;
  fault: string;
  onClose: () => void;
  onAssign: (to: string) => void;
}

/** Asks who is to have a task. Whom the definition names is offered; the service knows the others. */
export function AssignDialog({ task, fault, onClose, onAssign }: AssignDialogProps) {
  const { t } = useTranslation();
  const [to, setTo] = useState("");
  const { roles, users } = task.candidates;
  const assign = (event: FormEvent) => {
    event.preventDefault();
    if (to.trim() !== "") {
      onAssign(to.trim());
    }
  };
  return (
    <Dialog title={t("tasks.assignTitle")} onClose={onClose}>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      <form className="stack" onSubmit={assign}>
        <label className="field">
          <span className="label">{t("tasks.assignTo")}</span>
          <span className="field-help">{roles.length > 0 ? t("tasks.assignRoles", { roles: roles.join(", ") }) : t("tasks.assignHelp")}</span>
          <input type="text" list="candidates" autoComplete="off" autoCapitalize="none" spellCheck={false} maxLength={128} value={to} onChange={(event) => setTo(event.target.value)} />
          <datalist id="candidates">
            {users.map((user) => (
              <option key={user} value={user}>
                {user}
              </option>
            ))}
          </datalist>
        </label>
        <div className="dialog-foot">
          <Button onPress={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind="main" isDisabled={to.trim() === ""}>
            {t("tasks.assign")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
