import { useCallback, useEffect, useRef, useState } from "react";
import { messageFor, ServiceError } from "../api/http";
import { type Instance, loadForm, noWorkflow } from "../api/runtime";
import type { Caller, FormView, Position } from "../api/types";
import type { Sent } from "../api/workflow";
import { safeRedirect } from "../route";
import { Link } from "../navigate";
import { Chip, toneOf } from "../ui/Chip";
import { Icon } from "../ui/Icon";
import { LoadFault, Notice, Skeleton } from "../ui/Notice";
import { PageTitle } from "../ui/Page";
import { Time } from "../ui/Time";
import { useLoaded } from "../ui/useLoaded";
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
  // The route makes a new object whenever the address is read.
  const [own] = useState(instance);
  const { loaded, reload, replace } = useLoaded(useCallback((signal: AbortSignal) => loadForm(own, signal), [own]));
  return (
    <>
      <Trail checklist={loaded.state === "ready" && loaded.value.form.formType === "Checklist"} />
      {loaded.state === "loading" && <Skeleton label="Loading form" rows={6} />}
      {loaded.state === "failed" && <Refused fault={loaded.fault} retry={reload} />}
      {loaded.state === "ready" && <FormPage instance={own} caller={caller} view={loaded.value} reload={reload} replace={replace} />}
    </>
  );
}

function Trail({ checklist }: { checklist: boolean }) {
  return (
    <p className="trail">
      <Link to={checklist ? "?kind=checklists" : ""}>
        <Icon name="back" />
        {checklist ? "All checklists" : "All forms"}
      </Link>
    </p>
  );
}

function Refused({ fault, retry }: { fault: unknown; retry: () => void }) {
  if (fault instanceof ServiceError && fault.status === 404) {
    return (
      <>
        <PageTitle tab="Not found">Form not found</PageTitle>
        <p>The form does not exist, or you do not have access to it.</p>
      </>
    );
  }
  return (
    <>
      <PageTitle tab="Form">Form</PageTitle>
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
      setNews({ tone: "info", title: "The status of this form has changed. It can no longer be edited.", redirect: "" });
    }
    wasEditable.current = view.editable;
    ownStep.current = false;
  }, [view]);

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
    onView(next, { tone: "good", title: "Form submitted.", redirect: safeRedirect(redirect, document.baseURI) });
  const onSent = (eventName: string, from: Position[], sent: Sent) => {
    ownStep.current = true;
    const name = readable(eventName);
    setNews(
      samePlaces(sent.states, from)
        ? { tone: "info", title: `“${name}” was sent. The status has not changed.`, redirect: "" }
        : { tone: "good", title: `“${name}” completed.`, redirect: safeRedirect(sent.redirect, document.baseURI) },
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
            {form.by === caller.id ? "Created by you" : `Created by ${form.by}`}, <Time at={form.when} />
          </span>
          {view.submittedAt > 0 && (
            <span>
              Submitted <Time at={view.submittedAt} />
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
                  <a href={news.redirect}>Continue</a>
                </p>
              )}
            </Notice>
          )}
          <h2 id="data-title">{view.editable ? "Fill in" : view.submittedAt > 0 ? "Submitted data" : "Data"}</h2>
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

function FormChips({ view }: { view: FormView }) {
  const status = view.form.status || (view.submittedAt > 0 ? "submitted" : "draft");
  return status.split(", ").map((name) => (
    <Chip key={name} tone={toneOf(view.category)}>
      {readable(name)}
    </Chip>
  ));
}
