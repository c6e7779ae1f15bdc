import { type ReactNode, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, RetryKeys, ServiceError } from "../api/http";
import type { ChecklistItem, Fillable, JSONObject } from "../api/types";
import { Button, kinds } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { keep, keptObject } from "../kit/kept";
import { Notice } from "../kit/Notice";
import { SchemaForm } from "../schemaform/SchemaForm";
import { Checklist } from "./Checklist";
import { Conflict, DraftLine } from "./DraftLine";
import { DropButton } from "./DropButton";
import { initialData } from "./initialData";
import { joined, otherTemplate } from "./misfits";
import { type DraftStore, useDraft, WrittenFor } from "./useDraft";
import { ChangedNotice, WordsNotice } from "./WordsNotice";

/** The service, for one thing that is filled in. */
export interface FillCalls<V extends Fillable, S> extends DraftStore {
  /** Makes it, if it is not there yet. */
  begin: () => Promise<unknown>;
  load: () => Promise<V>;
  /** Sends the data with the event that was chosen, "" where there is no choice. The same key with the same data sends it once. */
  submit: (data: JSONObject, event: string, key: string) => Promise<S>;
  /** Drops the draft, or all of it. */
  drop: (all: boolean) => Promise<void>;
}

/** An event that the data can be sent with. */
export interface Choice {
  name: string;
  label: string;
  style: string;
}

interface FillInProps<V extends Fillable, S> {
  /** The same as long as the component is there. */
  calls: FillCalls<V, S>;
  /** Where what is typed is kept in the browser's tab until the service has it. */
  store: string;
  view: V;
  /** There is something to drop: never, nothing of it was submitted and all goes; draft, only what was typed since. */
  drops: "none" | "never" | "draft";
  /** The buttons that send it; without them there is one, to submit. */
  choices?: Choice[];
  /** It is to be looked at again: the service does not take what it was thought to. */
  onLook: () => void;
  /** It is about to be submitted. */
  onSubmitting?: () => void;
  /** As it is after it was loaded again. */
  onView: (view: V) => void;
  onSubmitted: (sent: S) => void;
  onDeleted?: () => void;
}

/** A form while the caller may change it. Mounted anew for each draft that is loaded. */
export function FillIn<V extends Fillable, S>({ calls, store, view, drops, choices, onLook, onSubmitting, onSubmitted, onView, onDeleted }: FillInProps<V, S>) {
  const { t } = useTranslation();
  // What is filled in is the template as it was when the page began; a newer one is asked for.
  // In another language it is the same one.
  const [atFirst] = useState(view.template);
  const template = view.template?.digest === atFirst?.digest ? view.template : atFirst;
  const [begun] = useState(() => (view.draft ? undefined : keptObject(store)));
  const [first] = useState(() => initialData(view));
  const [words, setWords] = useState(first.words);
  const [wasChanged] = useState(view.draft?.templateChanged === true);
  const changesNow = view.template !== null && view.template.digest !== template?.digest;
  const [data, setData] = useState(begun ?? first.fits);
  const [written] = useState(() => new WrittenFor(first.words.length === 0 ? template?.digest : digestOfWords(view)));
  const { status, saver } = useDraft(calls, view.draft, written, store);
  const [submitting, setSubmitting] = useState(false);
  const [fault, setFault] = useState("");
  const [refusals, setRefusals] = useState(0);
  const faultBox = useRef<HTMLDivElement>(null);
  const [keys] = useState(() => new RetryKeys());
  const chosen = useRef("");
  const [asked, setAsked] = useState<{ complete: JSONObject; choice: Choice } | null>(null);

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
    calls.begin().catch(() => {});
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
        const next = await calls.load();
        if (saver.hasUnsaved) {
          throw new ServiceError(0, t("draftLine.failed", { message: t("fault.busy") }));
        }
        onView(next);
      } catch (cause) {
        saver.reopen();
        throw cause;
      }
    });
  const submit = (complete: JSONObject, event: string) =>
    guarded(async () => {
      if (submitting) {
        return;
      }
      setSubmitting(true);
      onSubmitting?.();
      setFault("");
      const unsaved = saver.hasUnsaved;
      await saver.close();
      try {
        const sent = await keys.once(JSON.stringify([event, complete]), (key) => calls.submit(complete, event, key));
        keep(store, "");
        onSubmitted(sent);
      } catch (cause) {
        setSubmitting(false);
        saver.reopen(unsaved ? complete : undefined);
        if (cause instanceof ServiceError && cause.final) {
          onLook();
        }
        throw cause;
      }
    });

  /** Submits; but asks first about what the definition calls dangerous. */
  const decide = (complete: JSONObject) => {
    const choice = choices?.find(({ name }) => name === chosen.current);
    if (choice?.style === "danger") {
      setAsked({ complete, choice });
    } else {
      void submit(complete, chosen.current);
    }
  };

  if (!template) {
    return <Notice tone="info" title={t("form.noTemplate")} />;
  }
  const foot = (
    <div className="form-foot">
      {!choices && (
        <Button type="submit" kind="main" isDisabled={submitting}>
          {submitting ? t("form.submitting") : t("form.submit")}
        </Button>
      )}
      {/* Enter in a field presses the first button of a form: where there is a choice, or none, it must send nothing. */}
      {choices && choices.length !== 1 && <button type="submit" disabled hidden aria-label={t("form.submit")} />}
      {choices?.map(({ name, label, style }) => (
        <Button key={name} type="submit" kind={kinds[style] ?? "plain"} isDisabled={submitting} value={name}>
          {label}
        </Button>
      ))}
      {drops !== "none" && (
        <DropButton
          never={drops === "never"}
          hasDraft={view.draft !== null || status.state === "saved"}
          isDisabled={submitting}
          saver={saver}
          drop={() => calls.drop(drops === "never")}
          onDropped={async () => {
            keep(store, "");
            if (drops === "never") {
              onDeleted?.();
            } else {
              onView(await calls.load());
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
      {asked && (
        <Dialog title={t("form.sure", { name: asked.choice.label })} onClose={() => setAsked(null)}>
          <p>{t("form.sureText")}</p>
          <div className="dialog-foot">
            <Button onPress={() => setAsked(null)}>{t("cancel")}</Button>
            <Button
              kind="danger"
              onPress={() => {
                setAsked(null);
                void submit(asked.complete, asked.choice.name);
              }}
            >
              {asked.choice.label}
            </Button>
          </div>
        </Dialog>
      )}
      {changesNow && <ChangedNotice onRenew={() => void renew()} />}
      {status.state === "conflict" && <Conflict onLoad={() => void guarded(async () => onView(await calls.load()))} onOverwrite={() => saver.overwrite()} />}
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
      {/* NB: a button is pressed before or behind the submission it causes, by whether a mouse or a key does it. */}
      <div onSubmitCapture={(event) => (chosen.current = submitterOf(event.nativeEvent))}>
        <Fields schema={template.schema} ui={template.ui} items={template.items} data={data} disabled={submitting} onChange={change} onSubmit={decide}>
          {foot}
        </Fields>
      </div>
    </>
  );
}

/** The value of the button that submits a form. */
const submitterOf = (event: Event) => (event instanceof SubmitEvent && event.submitter instanceof HTMLButtonElement ? event.submitter.value : "");

/** The template that a draft with words is kept for: not the one of now, so that they are told apart again. */
function digestOfWords({ draft, template }: Fillable): string {
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
