import { type ReactNode, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, RetryKeys } from "../api/http";
import { discardDraft, type Instance, loadForm, submitForm } from "../api/runtime";
import type { ChecklistItem, FormView, JSONObject } from "../api/types";
import { SchemaForm } from "../schemaform/SchemaForm";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { Notice } from "../kit/Notice";
import { Checklist } from "./Checklist";
import { Conflict, DraftLine } from "./DraftLine";
import { initialData } from "./initialData";
import { useDraft } from "./useDraft";

interface FillInProps {
  instance: Instance;
  view: FormView;
  /** The form is about to be submitted. */
  onSubmitting: () => void;
  /** The form as it is after it was loaded again. */
  onView: (view: FormView) => void;
  /** The form as it is after it was submitted, and where its workflow leads. */
  onSubmitted: (view: FormView, redirect: string) => void;
}

/** The form while the caller may change it. Mounted anew for each draft that is loaded. */
export function FillIn({ instance, view, onSubmitting, onSubmitted, onView }: FillInProps) {
  const { t } = useTranslation();
  const template = view.template;
  const [data, setData] = useState(() => initialData(view));
  const { status, saver } = useDraft(instance, view.draft?.revision ?? 0, view.draft?.savedAt ?? 0);
  const [submitting, setSubmitting] = useState(false);
  const [fault, setFault] = useState("");
  const [refusals, setRefusals] = useState(0);
  const [discarding, setDiscarding] = useState(false);
  const faultBox = useRef<HTMLDivElement>(null);
  const [keys] = useState(() => new RetryKeys());

  useEffect(() => {
    if (refusals > 0) {
      faultBox.current?.focus();
    }
  }, [refusals]);

  const change = (next: JSONObject, byPerson: boolean) => {
    setData(next);
    if (byPerson) {
      saver.change(next);
    }
  };
  const reload = async () => onView(await loadForm(instance));
  const guarded = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (cause) {
      setFault(messageFor(cause));
      setRefusals((n) => n + 1);
    }
  };
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
        await keys.once(JSON.stringify(complete), async (key) => {
          const redirect = await submitForm(instance, complete, key);
          onSubmitted(await loadForm(instance), redirect);
        });
      } catch (cause) {
        setSubmitting(false);
        saver.reopen(unsaved ? complete : undefined);
        throw cause;
      }
    });
  const discard = () =>
    guarded(async () => {
      setDiscarding(false);
      setFault("");
      try {
        await saver.discard(() => discardDraft(instance));
        await reload();
      } catch (cause) {
        saver.reopen();
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
      {(view.draft !== null || status.state === "saved") && (
        <Button kind="text" onPress={() => setDiscarding(true)} isDisabled={submitting}>
          {t("form.discard")}
        </Button>
      )}
      <DraftLine status={status} />
    </div>
  );
  return (
    <>
      {fault !== "" && <Notice tone="bad" title={fault} ref={faultBox} />}
      {status.state === "conflict" && <Conflict onLoad={() => void guarded(reload)} onOverwrite={() => saver.overwrite()} />}
      <Fields view={view} items={template.items} data={data} disabled={submitting} onChange={change} onSubmit={(complete) => void submit(complete)}>
        {foot}
      </Fields>
      {discarding && (
        <Dialog title={t("form.discardTitle")} onClose={() => setDiscarding(false)}>
          <p>{t("form.discardText")}</p>
          <div className="dialog-foot">
            <Button onPress={() => setDiscarding(false)}>{t("form.keepDraft")}</Button>
            <Button kind="danger" onPress={() => void discard()}>
              {t("form.discardYes")}
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

interface FieldsProps {
  view: FormView;
  items: ChecklistItem[] | undefined;
  data: JSONObject;
  disabled: boolean;
  onChange: (data: JSONObject, byPerson: boolean) => void;
  onSubmit: (data: JSONObject) => void;
  children: ReactNode;
}

function Fields({ view, items, data, children, ...rest }: FieldsProps) {
  if (items) {
    return (
      <Checklist items={items} data={data} {...rest}>
        {children}
      </Checklist>
    );
  }
  return (
    <SchemaForm schema={view.template?.schema ?? {}} ui={view.template?.ui} data={data} idPrefix="form" {...rest}>
      {children}
    </SchemaForm>
  );
}
