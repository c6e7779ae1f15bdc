import { ListFilter, Plus, X } from "lucide-react";
import { type FormEvent, useEffect, useRef, useState } from "react";
import type { components } from "../api/openapi";
import { Button } from "../kit/Button";
import { filterOf, isWhole, objectOf, type Operator, operators, type Row, rowsOf, statePath, takesValue } from "./filter";
import { useText } from "./text";

interface Field {
  path: string;
  label: string;
}

interface FilterBuilderProps {
  /** The text of the filter that is in use. */
  filter: string;
  /** Where the state stands, which a new condition begins with. */
  stateAt?: string;
  fields: Field[];
  /** What another field's path begins with; without it there are no other fields. */
  others?: string;
  /** A filter, as an example. */
  example?: string;
  states: components["schemas"]["Status"][];
  onFilter: (filter: string) => void;
}

/** Conditions as rows, or as text for those who write filters. Nothing is asked for until it is applied. */
export function FilterBuilder({ filter, stateAt = statePath, fields, others, example = '{"states.nodeId": "review"}', states, onFilter }: FilterBuilderProps) {
  const t = useText();
  const known = [{ path: stateAt, label: t("instances.state") }, ...fields];
  const [text, setText] = useState<string | null>(null);
  const [rows, setRows] = useState<Row[]>(() => rowsOf(filter) ?? []);
  const [fault, setFault] = useState("");
  const [added, setAdded] = useState(-1);
  const told = useRef(filter);
  // Back, forward and views change it from outside.
  useEffect(() => {
    if (filter !== told.current) {
      told.current = filter;
      setRows(rowsOf(filter) ?? []);
      setText((before) => (before === null ? null : filter));
      setFault("");
    }
  }, [filter]);

  const apply = (to: string) => {
    told.current = to;
    setFault("");
    onFilter(to);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const written = isText ? shown.trim() : filterOf(rows);
    if (written !== "" && objectOf(written) === null) {
      setFault(t("instances.notJSON"));
      return;
    }
    apply(written);
  };
  const inRows = rowsOf(filter) !== null;
  const isText = text !== null || !inRows;
  const shown = text ?? filter;
  const change = (index: number, part: Partial<Row>) => setRows(rows.map((row, i) => (i === index ? { ...row, ...part } : row)));
  const changed = isText ? shown.trim() !== filter : filterOf(rows) !== filterOf(rowsOf(filter) ?? []);
  return (
    <form className="ops-filter" onSubmit={submit} aria-label={t("instances.filter")}>
      {isText ? (
        <div className="field">
          <label className="label" htmlFor="filter-text">
            {t("instances.text")}
          </label>
          <textarea id="filter-text" className="ops-code" rows={4} spellCheck={false} value={shown} onChange={(event) => setText(event.target.value)} aria-invalid={fault !== ""} aria-describedby="filter-help" />
          <p id="filter-help" className={fault === "" ? "field-help" : "field-fault"}>
            {fault !== "" ? fault : t("instances.textHelp", { example })}
          </p>
        </div>
      ) : (
        rows.map((row, index) => (
          <Condition
            key={index}
            number={index + 1}
            row={row}
            stateAt={stateAt}
            known={known}
            others={others}
            states={states}
            takesFocus={index === added}
            onChange={(part) => change(index, part)}
            onRemove={() => {
              const left = rows.filter((_, i) => i !== index);
              setRows(left);
              setAdded(Math.min(index, left.length - 1));
              if (isWhole(row)) {
                apply(filterOf(left));
              }
            }}
          />
        ))
      )}
      <div className="ops-filter-foot">
        {!isText && (
          <Button
            small
            onPress={() => {
              setRows([...rows, { path: stateAt, operator: "is", value: states[0]?.nodeId ?? "" }]);
              setAdded(rows.length);
            }}
          >
            {rows.length === 0 ? <ListFilter aria-hidden /> : <Plus aria-hidden />}
            {t("instances.add")}
          </Button>
        )}
        {(isText || rows.length > 0) && (
          <Button small kind="main" type="submit" isDisabled={!changed}>
            {t("instances.apply")}
          </Button>
        )}
        {filter !== "" && (
          <Button
            small
            kind="quiet"
            onPress={() => {
              setRows([]);
              setText((before) => (before === null ? null : ""));
              apply("");
            }}
          >
            {t("instances.clear")}
          </Button>
        )}
        <Button
          small
          kind="text"
          isDisabled={isText && rowsOf(shown) === null}
          onPress={() => {
            if (isText) {
              setRows(rowsOf(shown) ?? []);
              setText(null);
            } else {
              setText(filterOf(rows));
            }
          }}
        >
          {t(isText ? "instances.asRows" : "instances.asText")}
        </Button>
        {isText && rowsOf(shown) === null && objectOf(shown) !== null && <span className="quiet ops-small">{t("instances.noRows")}</span>}
      </div>
      {!isText && rows.some((row) => row.path !== stateAt && takesValue(row.operator)) && <p className="field-help">{t("instances.valueHelp")}</p>}
    </form>
  );
}

interface ConditionProps {
  number: number;
  row: Row;
  stateAt: string;
  known: Field[];
  others: string | undefined;
  states: components["schemas"]["Status"][];
  takesFocus: boolean;
  onChange: (part: Partial<Row>) => void;
  onRemove: () => void;
}

const otherField = "-";

function Condition({ number, row, stateAt, known, others, states, takesFocus, onChange, onRemove }: ConditionProps) {
  const t = useText();
  const first = useRef<HTMLSelectElement>(null);
  const [isOther, setOther] = useState(false);
  useEffect(() => {
    if (takesFocus) {
      first.current?.focus();
    }
  }, [takesFocus]);
  const isKnown = !isOther && known.some(({ path }) => path === row.path);
  const choose = (path: string) => {
    setOther(path === otherField);
    onChange(path === otherField ? { path: others ?? "", value: "" } : { path, value: path === stateAt ? (states[0]?.nodeId ?? "") : row.path === stateAt ? "" : row.value });
  };
  const picksState = row.path === stateAt && isKnown && (row.operator === "is" || row.operator === "isNot") && states.some(({ nodeId }) => nodeId === row.value);
  return (
    <fieldset className="ops-row">
      <legend className="visually-hidden">{`${t("instances.filter")} ${number}`}</legend>
      <select ref={first} aria-label={t("instances.fieldOf", { number })} value={isKnown ? row.path : otherField} onChange={(event) => choose(event.target.value)}>
        {known.map(({ path, label }) => (
          <option key={path} value={path}>
            {label}
          </option>
        ))}
        {(others !== undefined || !isKnown) && <option value={otherField}>{t("instances.other")}</option>}
      </select>
      {!isKnown && <input aria-label={t("instances.pathOf", { number })} className="ops-code" spellCheck={false} value={row.path} onChange={(event) => onChange({ path: event.target.value })} />}
      <select aria-label={t("instances.operatorOf", { number })} value={row.operator} onChange={(event) => onChange({ operator: event.target.value as Operator })}>
        {operators.map((operator) => (
          <option key={operator} value={operator}>
            {t(`instances.operators.${operator}`)}
          </option>
        ))}
      </select>
      {takesValue(row.operator) &&
        (picksState ? (
          <select aria-label={t("instances.valueOf", { number })} value={row.value} onChange={(event) => onChange({ value: event.target.value })}>
            {[...new Map(states.map((state) => [state.nodeId, state])).values()].map((state) => (
              <option key={state.nodeId} value={state.nodeId}>
                {state.label}
              </option>
            ))}
          </select>
        ) : (
          <input
            aria-label={t("instances.valueOf", { number })}
            spellCheck={false}
            placeholder={t(row.operator === "oneOf" ? "instances.listValue" : "instances.ownValue")}
            value={row.value}
            onChange={(event) => onChange({ value: event.target.value })}
          />
        ))}
      <Button small round kind="quiet" aria-label={t("instances.removeOf", { number })} onPress={onRemove}>
        <X aria-hidden />
      </Button>
    </fieldset>
  );
}
