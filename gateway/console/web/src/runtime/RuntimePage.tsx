import { useQueryClient } from "@tanstack/react-query";
import { ChevronLeft } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { randomKey, ServiceError } from "../api/http";
import { deleteForm, discardDraft, type Instance, loadForm, noWorkflow, saveDraft, submitForm } from "../api/runtime";
import type { Caller, FormView, Position, WorkflowEvent } from "../api/types";
import type { Sent } from "../api/workflow";
import { runtimePath, safeRedirect } from "../route";
import { go, knownEntryKey, Link, settle } from "../navigate";
import { LoadFault, Notice, Skeleton } from "../kit/Notice";
import { PageTitle } from "../kit/Page";
import { Time } from "../kit/Time";
import { useLoaded } from "../kit/useLoaded";
import { nameOf } from "../words";
import { useSummary } from "../instance/useSummary";
import { FormStatus } from "../worklist/FormStatus";
import { tellNext } from "../worklist/news";
import { useTaskWatch } from "../worklist/useTasks";
import { type FillCalls, FillIn } from "./FillIn";
import { FormPlace } from "./formPlace";
import { loadNew, makeForm } from "./newForm";
import { ReadOnly } from "./ReadOnly";
import { Sidebar } from "./Sidebar";

/** A form that exists, or what one is to be made of. */
export type Subject = { instance: Instance } | { formId: string; workflowId: string; checklist: boolean };

interface RuntimePageProps {
  subject: Subject;
  caller: Caller;
}

/** The page of one form or checklist. */
export default function RuntimePage({ subject, caller }: RuntimePageProps) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  // The route makes a new object whenever the address is read, and the address changes when the form is made.
  const [own] = useState(subject);
  const [key] = useState(() => knownEntryKey() ?? randomKey());
  const [first] = useState(caller); // one with another name or other rights begins nothing anew
  const [place] = useState(() => ("instance" in own ? new FormPlace(own.instance, () => Promise.resolve(own.instance)) : new FormPlace(null, () => makeForm(own, key))));
  const instance = useSyncExternalStore(place.subscribe, () => place.instance);
  const load = useCallback(
    (signal: AbortSignal) => (place.instance || "instance" in own ? place.made().then((made) => loadForm(made, signal)) : loadNew(own, first, signal)),
    [own, place, first],
  );
  const { loaded, reload, replace } = useLoaded(load, { stays: (view) => view.editable }); // what is typed into it is the person's own
  useTaskWatch(instance === null || instance.workflowId === noWorkflow); // the others are followed themselves
  useEffect(() => {
    if (place.isNew && instance && "formId" in own) {
      settle(runtimePath(own.formId, instance.workflowId, instance.instanceId));
      reload();
    }
  }, [place, own, instance, reload]);
  const onDeleted = (name: string) => {
    tellNext(t("form.deleted", { name }));
    void queries.invalidateQueries({ queryKey: ["forms"] });
    go(checklist ? "?tab=checklists" : "?tab=requests");
  };
  const checklist = "instance" in own ? loaded.state === "ready" && loaded.value.form.formType === "Checklist" : own.checklist;
  return (
    <>
      <Trail checklist={checklist} />
      {loaded.state === "loading" && <Skeleton label={t("form.loading")} rows={6} />}
      {loaded.state === "failed" && <Refused fault={loaded.fault} retry={reload} />}
      {loaded.state === "ready" && <FormPage place={place} store={`troupe.form.${key}`} caller={caller} view={loaded.value} reload={reload} replace={replace} onDeleted={onDeleted} />}
    </>
  );
}

function Trail({ checklist }: { checklist: boolean }) {
  const { t } = useTranslation();
  return (
    <p className="trail">
      <Link to={checklist ? "?tab=checklists" : "?tab=requests"}>
        <ChevronLeft aria-hidden />
        {checklist ? t("form.allChecklists") : t("form.allRequests")}
      </Link>
    </p>
  );
}

function Refused({ fault, retry }: { fault: unknown; retry: () => void }) {
  const { t } = useTranslation();
  if (fault instanceof ServiceError && fault.status === 404) {
    return (
      <>
        <PageTitle tab={t("notFound.tab")}>{t("form.notFoundTitle")}</PageTitle>
        <p>{t("form.notFoundText")}</p>
      </>
    );
  }
  return (
    <>
      <PageTitle tab={t("form.tab")}>{t("form.tab")}</PageTitle>
      <LoadFault fault={fault} retry={retry} />
    </>
  );
}

interface FormPageProps {
  place: FormPlace;
  store: string;
  caller: Caller;
  view: FormView;
  reload: () => void;
  replace: (view: FormView) => void;
  onDeleted: (name: string) => void;
}

/** A line about what has just happened. */
interface News {
  tone: "info" | "good";
  title: string;
  /** Where the workflow leads on, "" for nowhere. */
  redirect: string;
}

function FormPage({ place, store, caller, view, reload, replace, onDeleted }: FormPageProps) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [news, setNews] = useState<News | null>(null);
  const newsBox = useRef<HTMLDivElement>(null);
  // Which loading the fields were filled from: a new one begins them anew.
  const [generation, setGeneration] = useState(0);
  const wasEditable = useRef(view.editable);
  // The person has sent something: what changes now is no surprise.
  const ownStep = useRef(false);

  // Somebody else can take the form out of the person's hands.
  useEffect(() => {
    if (wasEditable.current && !view.editable && !ownStep.current) {
      setNews({ tone: "info", title: t("form.taken"), redirect: "" });
    }
    wasEditable.current = view.editable;
    ownStep.current = false;
    // Lists that are gone back to must not show what was.
    void queries.invalidateQueries({ queryKey: ["forms"] });
    void queries.invalidateQueries({ queryKey: ["tasks"] });
  }, [view, queries, t]);

  useEffect(() => {
    if (news) {
      newsBox.current?.focus();
    }
  }, [news]);

  const onView = (next: FormView, what: News | null) => {
    setNews(what);
    ownStep.current = true;
    replace(next);
    setGeneration((n) => n + 1);
  };
  const onSubmitted = ({ view: next, redirect }: Submitted) =>
    onView(next, { tone: "good", title: t("form.submitted"), redirect: safeRedirect(redirect, document.baseURI) });
  const onSent = (event: WorkflowEvent, from: Position[], sent: Sent) => {
    ownStep.current = true;
    const name = nameOf(event);
    setNews(
      samePlaces(sent.states, from)
        ? { tone: "info", title: t("form.eventSame", { name }), redirect: "" }
        : { tone: "good", title: t("form.eventDone", { name }), redirect: safeRedirect(sent.redirect, document.baseURI) },
    );
    reload();
  };

  const { form, template } = view;
  const { instance } = place;
  const own = form.by === caller.id;
  const calls = useMemo(() => callsOf(place), [place]);
  const summary = useSummary(instance && instance.workflowId !== noWorkflow && !own ? instance : null);
  return (
    <>
      <div className="form-head">
        <PageTitle tab={form.name}>{form.name}</PageTitle>
        {template?.description && <p className="form-about">{template.description}</p>}
        <p className="form-facts">
          <FormStatus form={form} submitted={view.submittedAt > 0} archived={view.category === "archived"} live />
          {instance && (
            <span>
              {own ? t("form.createdByYou") : t("form.createdBy", { name: summary.data?.requesterName ?? form.by })}, <Time at={form.when} />
            </span>
          )}
          {view.submittedAt > 0 && (
            <span>
              {t("form.submittedAt")} <Time at={view.submittedAt} />
            </span>
          )}
        </p>
      </div>
      <div className="columns">
        <section className="card form-card" aria-labelledby="data-title">
          {news && (
            <Notice tone={news.tone} title={news.title} ref={newsBox}>
              {news.redirect !== "" && (
                <p>
                  <a href={news.redirect}>{t("form.continue")}</a>
                </p>
              )}
            </Notice>
          )}
          <h2 id="data-title">{view.editable ? t("form.fillIn") : view.submittedAt > 0 ? t("form.submittedData") : t("form.data")}</h2>
          {view.editable ? (
            <FillIn
              key={generation}
              calls={calls}
              store={store}
              view={view}
              drops={!instance ? "none" : own && view.submittedAt === 0 ? "never" : "draft"}
              onLook={reload}
              onDeleted={() => onDeleted(form.name)}
              onSubmitting={() => (ownStep.current = true)}
              onSubmitted={onSubmitted}
              onView={(next) => onView(next, null)}
            />
          ) : (
            <ReadOnly view={view} />
          )}
        </section>
        {instance && instance.workflowId !== noWorkflow && <Sidebar instance={instance} caller={caller} view={view} onMoved={reload} onSent={onSent} />}
      </div>
    </>
  );
}

/** The form after it was submitted, and where its workflow leads. */
interface Submitted {
  view: FormView;
  redirect: string;
}

function callsOf(place: FormPlace): FillCalls<FormView, Submitted> {
  const load = async () => loadForm(await place.made());
  return {
    begin: () => place.made(),
    load,
    stored: async () => (await load()).draft,
    save: async (...draft) => saveDraft(await place.made(), ...draft),
    submit: async (data, _, key) => ({ redirect: await submitForm(await place.made(), data, key), view: await load() }),
    drop: async (all) => (all ? deleteForm : discardDraft)(await place.made()),
  };
}

/** Whether two lists of positions are the same. */
function samePlaces(a: Position[], b: Position[]): boolean {
  return a.length === b.length && a.every((at, n) => at.stateMachineId === b[n]?.stateMachineId && at.nodeId === b[n]?.nodeId);
}
