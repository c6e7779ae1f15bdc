import Form, { type IChangeEvent } from "@rjsf/core";
import type { RJSFSchema, RJSFValidationError, UiSchema } from "@rjsf/utils";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { JSONObject } from "../api/types";
import { Boundary } from "../kit/Boundary";
import { ErrorSummary, type SummaryEntry } from "../kit/ErrorSummary";
import { Notice } from "../kit/Notice";
import { t } from "../text";
import { messageFor } from "../api/http";
import { titlesAt } from "./titles";
import { templates } from "./templates";
import { layoutOf, renderable } from "./layout";
import { pathOf, validator } from "./validator";
import { widgets } from "./widgets";

interface SchemaFormProps {
  schema: JSONObject;
  /** Layout hints of the template. */
  ui?: JSONObject | undefined;
  data: JSONObject;
  /** Begins the ids of all fields; two forms on a page need two. */
  idPrefix: string;
  disabled?: boolean;
  /** byPerson is false when the form itself has filled in defaults. */
  onChange: (data: JSONObject, byPerson: boolean) => void;
  /** Called with data that fits the schema. */
  onSubmit: (data: JSONObject) => void;
  /** The buttons. */
  children: ReactNode;
}

/** A form made from a JSON Schema. */
export function SchemaForm(props: SchemaFormProps) {
  // A hint that cannot be followed must not take the form away.
  return (
    <Boundary fallback={() => <Boundary fallback={notShown}>{<Inside {...props} ui={undefined} />}</Boundary>}>
      <Inside {...props} />
    </Boundary>
  );
}

const notShown = (fault: unknown) => (
  <Notice tone="bad" title={t("form.cannotShow")} alert>
    <p>{t("form.templateFault", { message: messageFor(fault) })}</p>
  </Notice>
);

function Inside({ schema: written, ui, data, idPrefix, disabled = false, onChange, onSubmit, children }: SchemaFormProps) {
  const [summary, setSummary] = useState<SummaryEntry[]>([]);
  const [tried, setTried] = useState(false);
  const summaryBox = useRef<HTMLDivElement>(null);
  const [attempts, setAttempts] = useState(0);
  const schema = useMemo(() => renderable(written), [written]);
  const layout = useMemo(() => layoutOf(schema, ui), [schema, ui]);

  // The focus goes to the summary after each attempt, when it is on the page.
  useEffect(() => {
    if (attempts > 0) {
      summaryBox.current?.focus();
    }
  }, [attempts]);

  const summarize = (errors: RJSFValidationError[]) =>
    setSummary(
      errors.map((error) => {
        const path = pathOf(error);
        return { fieldId: [idPrefix, ...path].join("_"), ...faultLine(titlesAt(schema, path), error.message ?? "") };
      }),
    );

  return (
    <>
      {summary.length > 0 && <ErrorSummary ref={summaryBox} entries={summary} />}
      <Form<JSONObject, RJSFSchema>
        schema={schema as RJSFSchema}
        uiSchema={layout as UiSchema}
        formData={data}
        validator={validator}
        templates={templates}
        widgets={widgets}
        idPrefix={idPrefix}
        className="schema-form"
        disabled={disabled}
        noHtml5Validate
        showErrorList={false}
        liveValidate={tried ? "onChange" : false}
        experimental_defaultFormStateBehavior={{ constAsDefaults: "skipOneOf", emptyObjectFields: "skipEmptyDefaults", arrayMinItems: { populate: "requiredOnly" } }}
        onChange={(event: IChangeEvent<JSONObject>, id?: string) => {
          if (tried) {
            summarize(event.errors);
          }
          onChange(event.formData ?? {}, id !== undefined);
        }}
        onSubmit={(event: IChangeEvent<JSONObject>) => {
          setSummary([]);
          onSubmit(event.formData ?? {});
        }}
        onError={(errors) => {
          setTried(true);
          summarize(errors);
          setAttempts((n) => n + 1);
        }}
      >
        {children}
      </Form>
    </>
  );
}

/** A fault in the list above a form: "Item 2: “Price” is required.", "Item 2, Price: This must be 1 or more." */
function faultLine(titles: string[], message: string): { label: string; message: string } {
  const name = titles.at(-1);
  return name !== undefined && message === t("faults.required")
    ? { label: titles.slice(0, -1).join(", "), message: t("faults.requiredNamed", { name }) }
    : { label: titles.join(", "), message };
}
