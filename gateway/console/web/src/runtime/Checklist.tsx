import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import type { ChecklistItem, JSONObject } from "../api/types";
import { ErrorSummary } from "../ui/ErrorSummary";
import { Icon } from "../ui/Icon";

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
        <ErrorSummary
          ref={summary}
          entries={missing.map((item) => ({ fieldId: idOf(item), label: item.label, message: "This item is required." }))}
        />
      )}
      <Progress items={items} data={data} />
      <ul className="checks">
        {items.map((item) => {
          const wrong = tried && missing.includes(item);
          const notes = [item.help ? `${idOf(item)}__help` : "", wrong ? `${idOf(item)}__error` : ""].filter((id) => id !== "");
          return (
            <li key={item.id} className={wrong ? "check check-wrong" : "check"}>
              <label className="option">
                <input
                  type="checkbox"
                  id={idOf(item)}
                  checked={data[item.id] === true}
                  disabled={disabled}
                  aria-required={item.required || undefined}
                  aria-invalid={wrong || undefined}
                  aria-describedby={notes.length > 0 ? notes.join(" ") : undefined}
                  onChange={(event) => onChange({ ...data, [item.id]: event.target.checked }, true)}
                />
                <span>
                  {item.label}
                  {!item.required && <span className="label-note"> (optional)</span>}
                </span>
              </label>
              {item.help && (
                <p className="field-help option-help" id={`${idOf(item)}__help`}>
                  {item.help}
                </p>
              )}
              {wrong && (
                <p className="field-fault option-help" id={`${idOf(item)}__error`}>
                  <Icon name="warning" />
                  This item is required.
                </p>
              )}
            </li>
          );
        })}
      </ul>
      {children}
    </form>
  );
}

/** The same list when it can only be read. */
export function CheckedList({ items, data }: { items: ChecklistItem[]; data: JSONObject }) {
  return (
    <>
      <Progress items={items} data={data} />
      <ul className="checks">
        {items.map((item) => (
          <li key={item.id} className={data[item.id] === true ? "check done" : "check"}>
            <span className="check-sign">{data[item.id] === true ? <Icon name="check" /> : <Icon name="close" />}</span>
            <span>
              {item.label}
              <span className="visually-hidden">: {data[item.id] === true ? "done" : "not done"}</span>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Progress({ items, data }: { items: ChecklistItem[]; data: JSONObject }) {
  const done = items.filter((item) => data[item.id] === true).length;
  return (
    <div className="progress">
      <progress value={done} max={items.length} aria-label="Progress" />
      <span>
        {done} of {items.length} done
      </span>
    </div>
  );
}
