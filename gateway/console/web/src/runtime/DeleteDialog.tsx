import { useTranslation } from "react-i18next";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";

interface DeleteDialogProps {
  /** What is deleted, where that is not seen. */
  name?: string;
  onClose: () => void;
  onDelete: () => void;
}

/** Asks before a form is deleted that was never submitted. */
export default function DeleteDialog({ name, onClose, onDelete }: DeleteDialogProps) {
  const { t } = useTranslation();
  return (
    <Dialog title={name === undefined ? t("form.deleteTitle") : t("form.deleteNamed", { name })} onClose={onClose}>
      <p>{t("form.deleteText")}</p>
      <div className="dialog-foot">
        <Button onPress={onClose}>{t("cancel")}</Button>
        <Button kind="danger" onPress={onDelete}>
          {t("form.deleteYes")}
        </Button>
      </div>
    </Dialog>
  );
}
