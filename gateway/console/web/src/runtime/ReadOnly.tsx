import type { ReactNode } from "react";
import type { Fillable, JSONObject } from "../api/types";
import { asObject, currencyOf } from "../schemaform/layout";
import { Sums, sumsOf } from "../schemaform/lines";
import { lineColumns } from "../schemaform/numbers";
import { resolved, titleOf } from "../schemaform/titles";
import { Notice } from "../kit/Notice";
import { t } from "../text";
import { formatAmount, formatDay, formatMinute } from "../words";
import { CheckedList } from "./Checklist";

/** What was submitted, to be read. */
export function ReadOnly({ view }: { view: Fillable }) {
  const { template, data } = view;
  if (template?.items) {
    return <CheckedList items={template.items} data={data} />;
  }
  const schema = template?.schema ?? {};
  const known = new Set(Object.keys(asObject(schema.properties)));
  const rest = Object.fromEntries(Object.entries(data).filter(([name]) => !known.has(name)));
  const own = Object.fromEntries(Object.entries(data).filter(([name]) => known.has(name)));
  return (
    <>
      {!template && <Notice tone="info" title={t("form.noTemplateRead")} />}
      {Object.keys(data).length === 0 && <p className="quiet">{t("form.noData")}</p>}
      <Facts data={own} schema={schema} whole={schema} ui={template?.ui} />
      {Object.keys(rest).length > 0 && (
        <section className="more-facts" aria-labelledby="more-facts">
          {template && <h3 id="more-facts">{t("form.fromWorkflow")}</h3>}
          <PlainFacts data={rest} />
        </section>
      )}
    </>
  );
}

interface FactsProps {
  data: JSONObject;
  /** What describes them; nothing for what no schema does. */
  schema: JSONObject;
  whole: JSONObject;
  /** The layout hints for them. */
  ui?: unknown;
}

/** The schema of what none describes. */
const nothing: JSONObject = {};

/** What no schema describes. */
export const PlainFacts = ({ data }: { data: JSONObject }) => <Facts data={data} schema={nothing} whole={nothing} />;

/** The members of an object, in the order of the schema, as names and values. */
function Facts({ data, schema, whole, ui }: FactsProps) {
  const properties = asObject(schema.properties);
  const names = [...Object.keys(properties).filter((name) => name in data), ...Object.keys(data).filter((name) => !(name in properties))];
  if (names.length === 0) {
    return null;
  }
  return (
    <dl className="facts">
      {names.map((name) => {
        const part = resolved(properties[name], whole);
        return (
          <div key={name} className="fact">
            <dt>{titleOf(name, part)}</dt>
            <dd>{valueOf(data[name], part, whole, asObject(ui)[name])}</dd>
          </div>
        );
      })}
    </dl>
  );
}

/** A value that no schema describes. */
export const ValueOf = ({ value }: { value: unknown }) => <>{valueOf(value, {}, {})}</>;

function valueOf(value: unknown, schema: JSONObject, whole: JSONObject, ui?: unknown): ReactNode {
  const named = optionName(value, schema);
  if (named !== undefined) {
    return named;
  }
  if (value === null || value === undefined || value === "") {
    return <span className="quiet">–</span>;
  }
  if (typeof value === "boolean") {
    return value ? t("yes") : t("no");
  }
  if (typeof value === "number") {
    return formatAmount(value, currencyOf(ui));
  }
  if (Array.isArray(value)) {
    return <Entries values={value} schema={schema} whole={whole} ui={ui} />;
  }
  if (typeof value === "object") {
    return <Facts data={value as JSONObject} schema={schema} whole={whole} ui={ui} />;
  }
  return textOf(String(value), schema.format);
}

/** The entries of a list that schema describes: a table where the form has one. */
function Entries({ values, schema, whole, ui }: { values: unknown[]; schema: JSONObject; whole: JSONObject; ui?: unknown }) {
  if (values.length === 0) {
    return <span className="quiet">{t("none")}</span>;
  }
  const item = resolved(schema.items, whole);
  const columns = lineColumns(schema, whole, ui);
  const hints = asObject(ui).items;
  // NB: what an older template asked for has no column, and must be seen.
  const known = new Set(columns?.map((column) => column.name));
  if (columns && values.every((value) => Object.keys(asObject(value)).length > 0 && Object.keys(asObject(value)).every((name) => known.has(name)))) {
    return (
      <>
      <table className="entry-lines">
        <thead>
          <tr>
            {columns.map(({ name, title, numeric }) => (
              <th key={name} scope="col" className={numeric ? "numeric" : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {values.map((value, index) => (
            <tr key={String(index)}>
              {columns.map(({ name, numeric }) => (
                <td key={name} className={numeric ? "numeric" : undefined}>
                  {valueOf(asObject(value)[name], resolved(asObject(item.properties)[name], whole), whole, asObject(hints)[name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <Sums names={sumsOf(ui)} columns={columns} rows={values as JSONObject[]} />
      </>
    );
  }
  return (
    <ul className="entries">
      {values.map((value, index) => (
        <li key={String(index)}>{valueOf(value, item, whole, hints)}</li>
      ))}
    </ul>
  );
}

/** The title that a schema gives to one of its choices. */
function optionName(value: unknown, schema: JSONObject): string | undefined {
  for (const list of [schema.oneOf, schema.anyOf]) {
    const option = Array.isArray(list) ? list.map(asObject).find((each) => each.const === value && "const" in each) : undefined;
    if (typeof option?.title === "string") {
      return option.title;
    }
  }
  return undefined;
}

function textOf(text: string, format: unknown): ReactNode {
  if (format === "date") {
    return formatDay(text);
  }
  const time = format === "date-time" ? new Date(text) : undefined;
  if (time && !Number.isNaN(time.getTime())) {
    return formatMinute(time);
  }
  return <span className="text">{text}</span>;
}
