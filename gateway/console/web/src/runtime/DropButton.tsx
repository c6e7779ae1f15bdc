import { Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import DeleteDialog from "./DeleteDialog";
import type { DraftSaver } from "./draftSaver";

interface DropButtonProps {
  /** The form was never submitted: it goes as a whole. Else only what was typed since. */
  never: boolean;
  hasDraft: boolean;
  isDisabled: boolean;
  saver: DraftSaver;
  drop: () => Promise<void>;
  onDropped: () => Promise<void>;
  onFault: (fault: unknown) => void;
}

/** Deletes a form that was never submitted, or drops the draft of one that was; but asks first. */
export function DropButton({ never, hasDraft, isDisabled, saver, drop, onDropped, onFault }: DropButtonProps) {
  const { t } = useTranslation();
  const [asking, setAsking] = useState(false);
  const confirmed = async () => {
    setAsking(false);
    try {
      await saver.discard(drop);
      await onDropped();
    } catch (fault) {
      saver.reopen();
      onFault(fault);
    }
  };
  if (!never && !hasDraft) {
    return null;
  }
  return (
    <>
      <Button kind="text" onPress={() => setAsking(true)} isDisabled={isDisabled}>
        <Trash2 aria-hidden />
        {never ? t("form.delete") : t("form.discard")}
      </Button>
      {asking && never && <DeleteDialog onClose={() => setAsking(false)} onDelete={() => void confirmed()} />}
      {asking && !never && (
        <Dialog title={t("form.discardTitle")} onClose={() => setAsking(false)}>
          <p>{t("form.discardText")}</p>
          <div className="dialog-foot">
            <Button onPress={() => setAsking(false)}>{t("form.keepDraft")}</Button>
            <Button kind="danger" onPress={() => void confirmed()}>
              {t("form.discardYes")}
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
