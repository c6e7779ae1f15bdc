import { useTranslation } from "react-i18next";
import type { Form } from "../api/types";
import { Badge, toneOf } from "../kit/Badge";
import { formWorkflow, statusOf } from "./statusWords";
import { usePresentation } from "./queries";

interface FormStatusProps {
  form: Form;
  submitted: boolean;
  archived: boolean;
  /** Changes are read out. */
  live?: boolean;
}

/** Where a form stands, in the words of its workflow's definition. */
export function FormStatus({ form, submitted, archived, live = false }: FormStatusProps) {
  const { t } = useTranslation();
  const workflow = usePresentation(form.states ? "" : formWorkflow(form));
  const known = statusOf(form, workflow.data);
  const shown = known.length > 0 ? known : [{ nodeId: "", label: submitted || archived ? t("form.statusSubmitted") : t("form.draft"), tone: submitted && !archived ? "good" : "neutral" }];
  return (
    <span className="badges" aria-live={live ? "polite" : undefined}>
      {shown.map((status) => (
        <Badge key={`${status.nodeId} ${status.label}`} tone={toneOf(status.tone)}>
          {status.label}
        </Badge>
      ))}
    </span>
  );
}
