import { type ReactNode, useEffect, useRef, useState } from "react";
import { messageFor, RetryKeys } from "../api/http";
import { discardDraft, type Instance, loadForm, submitForm } from "../api/runtime";
import type { ChecklistItem, FormView, JSONObject } from "../api/types";
import { SchemaForm } from "../schemaform/SchemaForm";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
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
    return <Notice tone="info" title="The template of this form no longer exists, so it cannot be filled in." />;
  }
  const foot = (
    <div className="form-foot">
      <button type="submit" className="button button-main" disabled={submitting}>
        {submitting ? "Submitting…" : "Submit"}
      </button>
      {(view.draft !== null || status.state === "saved") && (
        <button type="button" className="button-text" onClick={() => setDiscarding(true)} disabled={submitting}>
          Discard draft
        </button>
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
        <Dialog title="Discard draft?" onClose={() => setDiscarding(false)}>
          <p>Everything you have entered since the last submission will be lost.</p>
          <div className="dialog-foot">
            <button type="button" className="button" onClick={() => setDiscarding(false)}>
              Keep draft
            </button>
            <button type="button" className="button button-main" onClick={() => void discard()}>
              Discard
            </button>
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
