import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor } from "../api/http";
import type { Instance } from "../api/runtime";
import { addComment } from "../api/tasks";
import { Button } from "../kit/Button";
import { keep, kept } from "../kit/kept";
import { Notice } from "../kit/Notice";

const textMax = 10_000;

interface CommentFormProps {
  instance: Instance;
  onAdded: () => void;
}

/** A comment to write. What is begun stays in the browser's tab, also over a reload. */
export function CommentForm({ instance, onAdded }: CommentFormProps) {
  const { t } = useTranslation();
  const store = `troupe.comment.${instance.workflowId}/${instance.instanceId}`;
  const [text, setText] = useState(() => kept(store));
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  const change = (next: string) => {
    setText(next);
    keep(store, next);
  };
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || text.trim() === "") {
      return;
    }
    setBusy(true);
    setFault("");
    try {
      await addComment(instance, text.trim());
      change("");
      onAdded();
    } catch (cause) {
      setFault(messageFor(cause));
    }
    setBusy(false);
  };
  return (
    <form className="comment-form" onSubmit={send}>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      <label className="field">
        <span className="label">{t("instance.comment")}</span>
        <span className="field-help">{t("instance.commentHelp")}</span>
        <textarea rows={3} maxLength={textMax} value={text} onChange={(event) => change(event.target.value)} />
      </label>
      <p>
        <Button type="submit" small isDisabled={busy || text.trim() === ""}>
          {busy ? t("instance.sending") : t("instance.send")}
        </Button>
      </p>
    </form>
  );
}
