import { Check, CircleAlert, Minus } from "lucide-react";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ChecklistItem, JSONObject } from "../api/types";
import { ErrorSummary } from "../kit/ErrorSummary";

interface ChecklistProps {
  items: ChecklistItem[];
  /** Item id to true or false; a missing one is false. */
  data: JSONObject;
  disabled: boolean;
  onChange: (data: JSONObject, byPerson: boolean) => void;
  onSubmit: (data: JSONObject) => void;
  children: ReactNode;
}

const idOf = (item: ChecklistItem) => `item_${item.id}`;

/** A checklist to tick. What is required must be ticked before it is submitted. */
export function Checklist({ items, data, disabled, onChange, onSubmit, children }: ChecklistProps) {
  const { t } = useTranslation();
  const [tried, setTried] = useState(false);
  const [attempts, setAttempts] = useState(0);
  const summary = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (attempts > 0) {
      summary.current?.focus();
    }
  }, [attempts]);

  const missing = items.filter((item) => item.required === true && data[item.id] !== true);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (missing.length > 0) {
      setTried(true);
      setAttempts(attempts + 1);
      return;
    }
    onSubmit(Object.fromEntries(items.map((item) => [item.id, data[item.id] === true])));
  };
  return (
    <form className="stack" onSubmit={submit} noValidate>
      {tried && missing.length > 0 && (
        <ErrorSummary ref={summary} entries={missing.map((item) => ({ fieldId: idOf(item), label: item.label, message: t("checklist.required") }))} />
      )}
      <Progress items={items} data={data} />
      <ul className="checks">
        {items.map((item) => (
          <Item
            key={item.id}
            item={item}
            ticked={data[item.id] === true}
            wrong={tried && missing.includes(item)}
            disabled={disabled}
            onTick={(ticked) => onChange({ ...data, [item.id]: ticked }, true)}
          />
        ))}
      </ul>
      {children}
    </form>
  );
}

interface ItemProps {
  item: ChecklistItem;
  ticked: boolean;
  wrong: boolean;
  disabled: boolean;
  onTick: (ticked: boolean) => void;
}

function Item({ item, ticked, wrong, disabled, onTick }: ItemProps) {
  const { t } = useTranslation();
  const id = idOf(item);
  const notes = [item.help ? `${id}__help` : "", wrong ? `${id}__error` : ""].filter((note) => note !== "");
  return (
    <li className={wrong ? "check check-wrong" : "check"}>
      <label className="option">
        <input
          type="checkbox"
          id={id}
          checked={ticked}
          disabled={disabled}
          aria-required={item.required || undefined}
          aria-invalid={wrong || undefined}
          aria-describedby={notes.length > 0 ? notes.join(" ") : undefined}
          onChange={(event) => onTick(event.target.checked)}
        />
        <span>
          {item.label}
          {!item.required && <span className="label-note"> {t("optional")}</span>}
        </span>
      </label>
      {item.help && (
        <p className="field-help option-help" id={`${id}__help`}>
          {item.help}
        </p>
      )}
      {wrong && (
        <p className="field-fault option-help" id={`${id}__error`}>
          <CircleAlert aria-hidden />
          {t("checklist.required")}
        </p>
      )}
    </li>
  );
}

/** The same list when it can only be read. */
export function CheckedList({ items, data }: { items: ChecklistItem[]; data: JSONObject }) {
  const { t } = useTranslation();
  return (
    <>
      <Progress items={items} data={data} />
      <ul className="checks">
        {items.map((item) => {
          const done = data[item.id] === true;
          return (
            <li key={item.id} className={done ? "check check-read done" : "check check-read"}>
              <span className="check-sign">{done ? <Check aria-hidden /> : <Minus aria-hidden />}</span>
              <span>
                {item.label}
                <span className="visually-hidden">: {done ? t("checklist.isDone") : t("checklist.isOpen")}</span>
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Progress({ items, data }: { items: ChecklistItem[]; data: JSONObject }) {
  const { t } = useTranslation();
  const done = items.filter((item) => data[item.id] === true).length;
  return (
    <div className="progress">
      <progress value={done} max={items.length} aria-label={t("checklist.progress")} />
      <span>{t("checklist.done", { done, total: items.length })}</span>
    </div>
  );
}
