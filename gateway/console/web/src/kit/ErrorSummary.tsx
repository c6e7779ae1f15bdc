import { CircleAlert } from "lucide-react";
import type { Ref } from "react";
import { useTranslation } from "react-i18next";

export interface SummaryEntry {
  /** The element to go to, or one around it. */
  fieldId: string;
  label: string;
  message: string;
}

/** All that must be corrected, on top of a form. Each entry leads to its field. */
export function ErrorSummary({ entries, ref }: { entries: SummaryEntry[]; ref: Ref<HTMLDivElement> }) {
  const { t } = useTranslation();
  return (
    <div className="notice notice-bad" role="group" aria-labelledby="summary-title" ref={ref} tabIndex={-1}>
      <CircleAlert aria-hidden className="notice-sign" />
      <div className="notice-text">
        <p className="notice-title" id="summary-title">
          {t("form.corrections", { count: entries.length })}
        </p>
        <ul className="plain">
          {entries.map((entry) => (
            <li key={`${entry.fieldId} ${entry.message}`}>
              <button type="button" className="link" onClick={() => focusField(entry.fieldId)}>
                {entry.label === "" ? entry.message : `${entry.label}: ${entry.message}`}
              </button>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

const focusable = "input, select, textarea, button, [role=spinbutton]";

/** Focuses a field; for a group its first field. */
export function focusField(id: string): void {
  const element = document.getElementById(id);
  const field = element?.matches(focusable) ? element : element?.querySelector<HTMLElement>(focusable);
  (field ?? element)?.scrollIntoView({ block: "center" });
  field?.focus({ preventScroll: true });
}
