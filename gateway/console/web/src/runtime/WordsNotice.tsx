import { useTranslation } from "react-i18next";
import type { JSONObject } from "../api/types";
import { Button } from "../kit/Button";
import { Notice } from "../kit/Notice";
import { titlesAt } from "../schemaform/titles";
import type { Word } from "./misfits";
import { ValueOf } from "./ReadOnly";

interface WordsNoticeProps {
  words: Word[];
  schema: JSONObject;
  onForget: () => void;
}

/** What was typed into an earlier form and has no place in this one, in the person's words. */
export function WordsNotice({ words, schema, onForget }: WordsNoticeProps) {
  const { t } = useTranslation();
  return (
    <Notice tone="info" title={t("words.title")}>
      {words.length === 0 ? (
        <p>{t("words.allFits")}</p>
      ) : (
        <>
          <p>{t("words.text")}</p>
          <dl className="facts words">
            {words.map((word) => (
              <div key={word.path.join("/")} className="fact">
                <dt>
                  {titlesAt(schema, word.path).join(", ")}
                  <span className="word-reason">{t(`words.${word.reason}`)}</span>
                </dt>
                <dd>
                  <ValueOf value={word.value} />
                </dd>
              </div>
            ))}
          </dl>
          <p>
            <Button small onPress={onForget}>
              {t("words.forget")}
            </Button>
          </p>
        </>
      )}
    </Notice>
  );
}

/** The template has changed while the page is open. */
export function ChangedNotice({ onRenew }: { onRenew: () => void }) {
  const { t } = useTranslation();
  return (
    <Notice tone="info" title={t("words.changed")} alert>
      <p>{t("words.changedText")}</p>
      <p>
        <Button small onPress={onRenew}>
          {t("words.renew")}
        </Button>
      </p>
    </Notice>
  );
}
