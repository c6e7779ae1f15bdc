import { Check, CircleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "../kit/Button";
import { Notice } from "../kit/Notice";
import { formatClock } from "../words";
import type { DraftStatus } from "./draftSaver";

/** One line about the draft. It is read out when there is time. */
export function DraftLine({ status }: { status: DraftStatus }) {
  return (
    <p className={`draft-line draft-${status.state}`} role="status" aria-live="polite">
      <Line status={status} />
    </p>
  );
}

function Line({ status }: { status: DraftStatus }) {
  const { t } = useTranslation();
  switch (status.state) {
    case "idle":
      return t("draftLine.idle");
    case "waiting":
    case "saving":
      return t("draftLine.saving");
    case "saved":
      return (
        <>
          <Check aria-hidden /> {t("draftLine.saved", { time: formatClock(new Date(status.savedAt)) })}
        </>
      );
    case "failed":
      return (
        <>
          <CircleAlert aria-hidden /> {t("draftLine.failed", { message: status.message })} {status.again && t("draftLine.again")}
        </>
      );
    case "conflict":
      return t("draftLine.conflict");
  }
}

interface ConflictProps {
  onLoad: () => void;
  onOverwrite: () => void;
}

/** Another tab or device has saved another draft; a person must say which one stands. */
export function Conflict({ onLoad, onOverwrite }: ConflictProps) {
  const { t } = useTranslation();
  return (
    <Notice tone="bad" title={t("draftLine.conflictTitle")} alert>
      <p>{t("draftLine.conflictText")}</p>
      <p className="buttons">
        <Button onPress={onLoad}>{t("draftLine.loadOther")}</Button>
        <Button onPress={onOverwrite}>{t("draftLine.keepThis")}</Button>
      </p>
    </Notice>
  );
}
