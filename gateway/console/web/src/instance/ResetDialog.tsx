import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, RetryKeys, ServiceError } from "../api/http";
import { resetTo } from "../api/past";
import type { Instance } from "../api/runtime";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { Notice } from "../kit/Notice";
import { formatNumber } from "../words";

/** The longest reason. */
export const reasonMax = 1000;

interface ResetDialogProps {
  instance: Instance;
  to: number;
  /** The instance's entity tag; the one when the dialog opens counts. */
  tag: string;
  onClose: () => void;
  /** It is done; the new entry. */
  onReset: (entry: number) => void;
}

/** Says what becomes of an instance that is made what it was, and asks why. */
export function ResetDialog({ instance, to, tag: present, onClose, onReset }: ResetDialogProps) {
  const { t } = useTranslation();
  const [tag] = useState(present);
  const [keys] = useState(() => new RetryKeys());
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  const isReady = reason.trim() !== "";
  const reset = async (event: FormEvent) => {
    event.preventDefault();
    if (!isReady || busy) {
      return;
    }
    setBusy(true);
    setFault("");
    try {
      onReset(await resetTo(instance, to, reason.trim(), tag, keys));
    } catch (cause) {
      setBusy(false);
      setFault(cause instanceof ServiceError && cause.status === 412 ? t("reset.moved") : messageFor(cause));
    }
  };
  return (
    <Dialog title={t("reset.title", { entry: formatNumber(to) })} onClose={onClose}>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      <ul className="reset-what">
        <li>{t("reset.becomes")}</li>
        <li>{t("reset.ends")}</li>
        <li>{t("reset.stays")}</li>
      </ul>
      <form className="stack" onSubmit={reset}>
        <label className="field">
          <span className="label">{t("reset.reason")}</span>
          <span className="field-help">{t("reset.reasonHelp")}</span>
          <textarea rows={3} required maxLength={reasonMax} value={reason} onChange={({ target }) => setReason(target.value)} />
        </label>
        <div className="dialog-foot">
          <Button onPress={onClose}>{t("cancel")}</Button>
          {/* NB: a button that is disabled while it is busy loses the focus, and Escape would lead nowhere. */}
          <Button type="submit" kind="danger" isDisabled={!isReady}>
            {busy ? t("actions.sending") : t("reset.yes")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
