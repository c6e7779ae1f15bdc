import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Caller } from "../api/types";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { Notice } from "../kit/Notice";
import { createToken } from "./api";
import { reasonFor } from "./parts";
import { operationsKey } from "./queries";
import { useText } from "./text";

/** Days after which a token expires; 0 is never. */
const lives = [30, 90, 365, 0];

const millisecondsOfDay = 86_400_000;

const focusAll = (box: HTMLInputElement | null) => {
  box?.focus();
  box?.select();
};

interface NewTokenProps {
  caller: Caller;
  /** Only administrators create tokens of other users. */
  isAdmin: boolean;
  /** Whose token it is at first. */
  user: string;
  onClose: () => void;
}

/** Creates a token and shows its secret, once. */
export function NewToken({ caller, isAdmin, user, onClose }: NewTokenProps) {
  const t = useText();
  const { t: common } = useTranslation();
  const queries = useQueryClient();
  const [owner, setOwner] = useState(user);
  const [note, setNote] = useState("");
  const [life, setLife] = useState(90);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  const [secret, setSecret] = useState("");
  const [isCopied, setCopied] = useState(false);

  const of = owner.trim() || caller.id;
  const create = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setFault("");
    try {
      const expires = life === 0 ? {} : { expires: new Date(Date.now() + life * millisecondsOfDay).toISOString() };
      setSecret((await createToken({ user: of, note: note.trim(), ...expires })).token);
    } catch (cause) {
      setFault(reasonFor(cause));
    }
    setBusy(false);
    await queries.invalidateQueries({ queryKey: operationsKey }); // also after a fault: there may be a token whose secret nobody has
  };
  const copy = async () => {
    await navigator.clipboard.writeText(secret);
    setCopied(true);
  };
  const leave = () => {
    if (!busy) {
      onClose(); // the answer on its way is the only one with the secret
    }
  };
  if (secret !== "") {
    return (
      <Dialog title={t("credentials.secretOf", { user: of })} onClose={onClose}>
        <Notice tone="info" title={t("credentials.once")} alert />
        <label className="field">
          <span className="label">{t("credentials.token")}</span>
          <span className="field-help">{t("credentials.use")}</span>
          <input type="text" className="ops-code" readOnly value={secret} ref={focusAll} />
        </label>
        <div className="dialog-foot">
          {/* Browsers have no clipboard on pages that did not come over HTTPS. */}
          {"clipboard" in navigator && <Button onPress={() => void copy()}>{t(isCopied ? "credentials.copied" : "credentials.copy")}</Button>}
          <Button kind="main" onPress={onClose}>
            {t("credentials.seen")}
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={t("credentials.new")} onClose={leave}>
      {fault !== "" && (
        <Notice tone="bad" title={t("credentials.notCreated")} alert>
          <p>{fault}</p>
        </Notice>
      )}
      <form className="stack" onSubmit={(event) => void create(event)}>
        {isAdmin && (
          <label className="field">
            <span className="label">{t("credentials.user")}</span>
            <input type="text" autoComplete="off" autoCapitalize="none" spellCheck={false} maxLength={128} value={owner} onChange={({ target }) => setOwner(target.value)} />
          </label>
        )}
        <label className="field">
          <span className="label">{t("credentials.note")}</span>
          <span className="field-help">{t("credentials.noteHelp")}</span>
          <input type="text" autoComplete="off" maxLength={200} value={note} onChange={({ target }) => setNote(target.value)} />
        </label>
        <label className="field">
          <span className="label">{t("credentials.expires")}</span>
          <select value={life} onChange={({ target }) => setLife(Number(target.value))}>
            {lives.map((days) => (
              <option key={days} value={days}>
                {days === 0 ? t("schedules.never") : t("credentials.inDays", { days })}
              </option>
            ))}
          </select>
        </label>
        <div className="dialog-foot">
          <Button onPress={leave}>{common("cancel")}</Button>
          <Button type="submit" kind="main" isDisabled={busy}>
            {t("credentials.create")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
