import { type ReactNode, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, RetryKeys, ServiceError } from "../api/http";
import { loadForm, submitForm } from "../api/runtime";
import type { ChecklistItem, FormView, JSONObject } from "../api/types";
import { Button } from "../kit/Button";
import { keep, keptObject } from "../kit/kept";
import { Notice } from "../kit/Notice";
import { SchemaForm } from "../schemaform/SchemaForm";
import { Checklist } from "./Checklist";
import { Conflict, DraftLine } from "./DraftLine";
import { DropButton } from "./DropButton";
import type { FormPlace } from "./formPlace";
import { initialData } from "./initialData";
import { joined, otherTemplate } from "./misfits";
import { useDraft, WrittenFor } from "./useDraft";
import { ChangedNotice, WordsNotice } from "./WordsNotice";

interface FillInProps {
  place: FormPlace;
  /** Where what is typed is kept in the browser's tab until the service has it. */
  store: string;
  view: FormView;
  /** The caller has made the form, or is about to. */
  own: boolean;
  /** The form is to be looked at again: the service does not take what it was thought to. */
  onLook: () => void;
  /** The form is about to be submitted. */
  onSubmitting: () => void;
  /** The form as it is after it was loaded again. */
  onView: (view: FormView) => void;
  /** The form as it is after it was submitted, and where its workflow leads. */
  onSubmitted: (view: FormView, redirect: string) => void;
  onDeleted: () => void;
}

/** The form while the caller may change it. Mounted anew for each draft that is loaded. */
export function FillIn({ place, store, view, own, onLook, onSubmitting, onSubmitted, onView, onDeleted }: FillInProps) {
  const { t } = useTranslation();
  // What is filled in is the template as it was when the page began; a newer one is asked for.
  const [template] = useState(view.template);
  const [begun] = useState(() => (view.draft ? undefined : keptObject(store)));
  const [first] = useState(() => initialData(view));
  const [words, setWords] = useState(first.words);
  const [wasChanged] = useState(view.draft?.templateChanged === true);
  const changesNow = view.template !== null && view.template.digest !== template?.digest;
  const [data, setData] = useState(begun ?? first.fits);
  const [written] = useState(() => new WrittenFor(first.words.length === 0 ? template?.digest : digestOfWords(view)));
  const { status, saver } = useDraft(place, view.draft, written, store);
  const [submitting, setSubmitting] = useState(false);
  const [fault, setFault] = useState("");
  const [refusals, setRefusals] = useState(0);
  const faultBox = useRef<HTMLDivElement>(null);
  const [keys] = useState(() => new RetryKeys());

  useEffect(() => {
    if (refusals > 0) {
      faultBox.current?.focus();
    }
  }, [refusals]);

  const save = (next: JSONObject, beside = words) => {
    if (!view.draft) {
      keep(store, JSON.stringify(next));
    }
    saver.change(beside.length === 0 ? next : joined(next, beside, template?.schema ?? {}));
    // NB: what goes wrong with making it is told when the draft is saved.
    place.made().catch(() => {});
  };
  // Typed into this page before it was loaded anew, and perhaps never saved.
  useEffect(() => {
    if (begun) {
      saver.change(begun);
    }
  }, [begun, saver]);

  const change = (next: JSONObject, byPerson: boolean) => {
    setData(next);
    if (byPerson) {
      save(next);
    }
  };
  const guarded = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (cause) {
      setFault(messageFor(cause));
      setRefusals((n) => n + 1);
    }
  };
  /** Saves what is typed and begins the page anew, with the template of now. */
  const renew = () =>
    guarded(async () => {
      saver.flush();
      await saver.close();
      try {
        const next = await loadForm(await place.made());
        if (saver.hasUnsaved) {
          throw new ServiceError(0, t("draftLine.failed", { message: t("fault.busy") }));
        }
        onView(next);
      } catch (cause) {
        saver.reopen();
        throw cause;
      }
    });
  const submit = (complete: JSONObject) =>
    guarded(async () => {
      if (submitting) {
        return;
      }
      setSubmitting(true);
      onSubmitting();
      setFault("");
      const unsaved = saver.hasUnsaved;
      await saver.close();
      try {
        const instance = await place.made();
        await keys.once(JSON.stringify(complete), async (key) => {
          const redirect = await submitForm(instance, complete, key);
          keep(store, "");
          onSubmitted(await loadForm(instance), redirect);
        });
      } catch (cause) {
        setSubmitting(false);
        saver.reopen(unsaved ? complete : undefined);
        if (cause instanceof ServiceError && cause.final) {
          onLook();
        }
        throw cause;
      }
    });

  if (!template) {
    return <Notice tone="info" title={t("form.noTemplate")} />;
  }
  const foot = (
    <div className="form-foot">
      <Button type="submit" kind="main" isDisabled={submitting}>
        {submitting ? t("form.submitting") : t("form.submit")}
      </Button>
      {place.instance && (
        <DropButton
          instance={place.instance}
          never={own && view.submittedAt === 0}
          hasDraft={view.draft !== null || status.state === "saved"}
          isDisabled={submitting}
          saver={saver}
          onDropped={async (deleted) => {
            keep(store, "");
            if (deleted) {
              onDeleted();
            } else if (place.instance) {
              onView(await loadForm(place.instance));
            }
          }}
          onFault={(cause) => void guarded(() => Promise.reject(cause))}
        />
      )}
      <DraftLine status={status} />
    </div>
  );
  return (
    <>
      {fault !== "" && <Notice tone="bad" title={fault} ref={faultBox} />}
      {changesNow && <ChangedNotice onRenew={() => void renew()} />}
      {status.state === "conflict" && <Conflict onLoad={() => void guarded(async () => onView(await loadForm(await place.made())))} onOverwrite={() => saver.overwrite()} />}
      {(words.length > 0 || (wasChanged && !changesNow)) && (
        <WordsNotice
          words={words}
          schema={template.schema ?? {}}
          onForget={() => {
            setWords([]);
            written.turnTo(template.digest);
            save(data, []);
          }}
        />
      )}
      <Fields schema={template.schema} ui={template.ui} items={template.items} data={data} disabled={submitting} onChange={change} onSubmit={(complete) => void submit(complete)}>
        {foot}
      </Fields>
    </>
  );
}

/** The template that a draft with words is kept for: not the one of now, so that they are told apart again. */
function digestOfWords({ draft, template }: FormView): string {
  return draft?.template && draft.template !== template?.digest ? draft.template : otherTemplate;
}

interface FieldsProps {
  schema: JSONObject | undefined;
  ui: JSONObject | undefined;
  items: ChecklistItem[] | undefined;
  data: JSONObject;
  disabled: boolean;
  onChange: (data: JSONObject, byPerson: boolean) => void;
  onSubmit: (data: JSONObject) => void;
  children: ReactNode;
}

function Fields({ schema, ui, items, data, children, ...rest }: FieldsProps) {
  if (items) {
    return (
      <Checklist items={items} data={data} {...rest}>
        {children}
      </Checklist>
    );
  }
  return (
    <SchemaForm schema={schema ?? {}} ui={ui} data={data} idPrefix="form" {...rest}>
      {children}
    </SchemaForm>
  );
}
