import { useQueryClient } from "@tanstack/react-query";
import { ChevronLeft } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, ServiceError } from "../api/http";
import { type Instance, loadForm, noWorkflow } from "../api/runtime";
import type { Caller, Category, FormView, Position } from "../api/types";
import type { Sent } from "../api/workflow";
import { safeRedirect } from "../route";
import { Link } from "../navigate";
import { Badge, type Tone } from "../kit/Badge";
import { LoadFault, Notice, Skeleton } from "../kit/Notice";
import { PageTitle } from "../kit/Page";
import { Time } from "../kit/Time";
import { useLoaded } from "../kit/useLoaded";
import { readable } from "../words";
import { FillIn } from "./FillIn";
import { ReadOnly } from "./ReadOnly";
import { Sidebar } from "./Sidebar";

interface RuntimePageProps {
  instance: Instance;
  caller: Caller;
}

/** The page of one form or checklist. */
export default function RuntimePage({ instance, caller }: RuntimePageProps) {
  const { t } = useTranslation();
  // The route makes a new object whenever the address is read.
  const [own] = useState(instance);
  const { loaded, reload, replace } = useLoaded(useCallback((signal: AbortSignal) => loadForm(own, signal), [own]));
  return (
    <>
      <Trail checklist={loaded.state === "ready" && loaded.value.form.formType === "Checklist"} />
      {loaded.state === "loading" && <Skeleton label={t("form.loading")} rows={6} />}
      {loaded.state === "failed" && <Refused fault={loaded.fault} retry={reload} />}
      {loaded.state === "ready" && <FormPage instance={own} caller={caller} view={loaded.value} reload={reload} replace={replace} />}
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
      <LoadFault message={messageFor(fault)} retry={retry} />
    </>
  );
}

interface FormPageProps extends RuntimePageProps {
  view: FormView;
  reload: () => void;
  replace: (view: FormView) => void;
}

/** A line about what has just happened. */
interface News {
  tone: "info" | "good";
  title: string;
  /** Where the workflow leads on, "" for nowhere. */
  redirect: string;
}

function FormPage({ instance, caller, view, reload, replace }: FormPageProps) {
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
    void queries.invalidateQueries();
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
  const onSubmitted = (next: FormView, redirect: string) =>
    onView(next, { tone: "good", title: t("form.submitted"), redirect: safeRedirect(redirect, document.baseURI) });
  const onSent = (eventName: string, from: Position[], sent: Sent) => {
    ownStep.current = true;
    const name = readable(eventName);
    setNews(
      samePlaces(sent.states, from)
        ? { tone: "info", title: t("form.eventSame", { name }), redirect: "" }
        : { tone: "good", title: t("form.eventDone", { name }), redirect: safeRedirect(sent.redirect, document.baseURI) },
    );
    reload();
  };

  const { form, template } = view;
  return (
    <>
      <div className="form-head">
        <PageTitle tab={form.name}>{form.name}</PageTitle>
        {template?.description && <p className="form-about">{template.description}</p>}
        <p className="form-facts">
          <FormChips view={view} />
          <span>
            {form.by === caller.id ? t("form.createdByYou") : t("form.createdBy", { name: form.by })}, <Time at={form.when} />
          </span>
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
              instance={instance}
              view={view}
              onSubmitting={() => (ownStep.current = true)}
              onSubmitted={onSubmitted}
              onView={(next) => onView(next, null)}
            />
          ) : (
            <ReadOnly view={view} />
          )}
        </section>
        {instance.workflowId !== noWorkflow && <Sidebar instance={instance} view={view} onMoved={reload} onSent={onSent} />}
      </div>
    </>
  );
}

/** Whether two lists of positions are the same. */
function samePlaces(a: Position[], b: Position[]): boolean {
  return a.length === b.length && a.every((at, n) => at.stateMachineId === b[n]?.stateMachineId && at.nodeId === b[n]?.nodeId);
}

const toneOfCategory: Record<Category, Tone> = { current: "active", submitted: "active", archived: "neutral" };

function FormChips({ view }: { view: FormView }) {
  const { t } = useTranslation();
  const names = view.form.status === "" ? [view.submittedAt > 0 ? t("form.statusSubmitted") : t("form.draft")] : view.form.status.split(", ").map(readable);
  return (
    <span className="badges" aria-live="polite">
      {names.map((name) => (
        <Badge key={name} tone={toneOfCategory[view.category]}>
          {name}
        </Badge>
      ))}
    </span>
  );
}
