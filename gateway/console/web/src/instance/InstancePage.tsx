import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight, FileText } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { isRefusal, ServiceError } from "../api/http";
import { type Instance, loadForm } from "../api/runtime";
import type { Summary } from "../api/tasks";
import { loadData, loadEvents, loadPending } from "../api/workflow";
import type { Caller, Pending } from "../api/types";
import { Badge, toneOf } from "../kit/Badge";
import { LoadFault, Notice, Skeleton } from "../kit/Notice";
import { PageTitle } from "../kit/Page";
import { Person } from "../kit/Person";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { runtimePath, safeRedirect, taskPath } from "../route";
import { PlainFacts, ReadOnly } from "../runtime/ReadOnly";
import { useWatch } from "../runtime/useWatch";
import { language } from "../text";
import { readable } from "../words";
import { usePresentation } from "../worklist/queries";
import { useTasks } from "../worklist/useTasks";
import { ActivityList } from "./ActivityList";
import { ChartCard } from "./ChartCard";
import { Columns } from "./Columns";
import { CommentForm } from "./CommentForm";
import { jobWords, timerWords, wordsOf } from "./definitionWords";
import { NextSteps, type Taken } from "./NextSteps";
import { TaskFormCard } from "./TaskFormCard";
import { instanceKey, useSummary } from "./useSummary";

interface InstancePageProps {
  instance: Instance;
  caller: Caller;
}

/** The page that every instance has, also one without a form. */
export default function InstancePage({ instance, caller }: InstancePageProps) {
  const { t } = useTranslation();
  const [own] = useState(instance);
  const summary = useSummary(own);
  // What a passing fault leaves on the page goes when it is not for the caller any more.
  const shown = isRefusal(summary.error) ? undefined : summary.data;
  return (
    <>
      <p className="trail">
        <Link to="">
          <ChevronLeft aria-hidden />
          {t("instance.back")}
        </Link>
      </p>
      {summary.isPending && <Skeleton rows={6} />}
      {summary.isError && !shown && <Refused fault={summary.error} retry={() => void summary.refetch()} />}
      {shown && <Inside instance={own} caller={caller} summary={shown} />}
    </>
  );
}

function Refused({ fault, retry }: { fault: unknown; retry: () => void }) {
  const { t } = useTranslation();
  if (fault instanceof ServiceError && fault.status === 404) {
    return (
      <>
        <PageTitle tab={t("notFound.tab")}>{t("instance.notFoundTitle")}</PageTitle>
        <p>{t("fault.notFound")}</p>
      </>
    );
  }
  return (
    <>
      <PageTitle tab={t("instance.tab")}>{t("instance.tab")}</PageTitle>
      <LoadFault fault={fault} retry={retry} />
    </>
  );
}

function Inside({ instance, caller, summary }: InstancePageProps & { summary: Summary }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [news, setNews] = useState<Taken | null>(null);
  const newsBox = useRef<HTMLDivElement>(null);
  const [asked, change] = useQueryPart();
  const taskId = asked.get("task") ?? "";
  const [opened, setOpened] = useState(false);
  useEffect(() => {
    if (news) {
      newsBox.current?.focus();
    }
  }, [news]);

  const key = instanceKey(instance);
  const events = useQuery({ queryKey: [...key, "events", language()], queryFn: ({ signal }) => loadEvents(instance, signal) });
  // NB: that a worker has taken a job is no entry of the history, and nobody is told.
  const pending = useQuery({ queryKey: [...key, "pending"], queryFn: ({ signal }) => loadPending(instance, signal), refetchInterval: ({ state }) => (state.data && state.data.jobs.length > 0 ? 5_000 : false) });
  const form = useQuery({ queryKey: [...key, "form", language()], queryFn: ({ signal }) => loadForm(instance, signal), enabled: summary.form !== null });
  const look = useCallback(() => {
    void queries.invalidateQueries({ queryKey: instanceKey(instance) });
    void queries.invalidateQueries({ queryKey: ["forms"] }); // it may stand elsewhere in them now
  }, [queries, instance]);
  const live = useWatch(instance, { onEntry: look, onLook: look });

  const onTaken = (taken: Taken) => {
    setNews(taken);
    look();
    void queries.invalidateQueries({ queryKey: ["tasks"] });
  };
  const redirect = news ? safeRedirect(news.redirect, document.baseURI) : "";
  return (
    <>
      <div className="form-head">
        <PageTitle tab={summary.title}>{summary.title}</PageTitle>
        <div className="form-facts">
          <span className="badges" aria-live="polite">
            {summary.status.map((status) => (
              <Badge key={`${status.stateMachineId} ${status.nodeId}`} tone={toneOf(status.tone)}>
                {status.label}
              </Badge>
            ))}
            {summary.ended === "cancelled" && <Badge>{t("instance.cancelled")}</Badge>}
          </span>
          <span>{summary.workflowName}</span>
          {summary.requester !== null && <Person name={summary.requesterName ?? summary.requester} />}
          <span>
            {t("instance.created")} <Time at={summary.createdAt} />
          </span>
          <span>
            {t("instance.changed")} <Time at={summary.updatedAt} />
          </span>
        </div>
      </div>
      {news && (
        <div className="page-news">
          <Notice tone={news.moved ? "good" : "info"} title={news.moved ? t("form.eventDone", { name: news.name }) : t("form.eventSame", { name: news.name })} ref={newsBox}>
            <p className="buttons">
              {redirect !== "" && <a href={redirect}>{t("form.continue")}</a>}
              <NextTask instance={instance} decided />
            </p>
          </Notice>
        </div>
      )}
      {!news && <NextTask instance={instance} />}
      <div className="columns">
        <div className="side main-side">
          <NextSteps
            instance={instance}
            caller={caller}
            tasks={summary.tasks}
            events={events.data}
            fault={events.error}
            retry={look}
            live={live}
            taskId={taskId}
            onTask={(id) => {
              setOpened(true);
              change({ task: id });
            }}
            onMoved={look}
            onTaken={onTaken}
          />
          <section className="card" aria-labelledby="data-title">
            <h2 id="data-title">{t("instance.data")}</h2>
            {form.data ? <ReadOnly view={form.data} /> : <Columns columns={summary.columns} />}
            {summary.form === null && <AllData instance={instance} />}
            {summary.form && (
              <p>
                <Link to={runtimePath(summary.form.formId, instance.workflowId, instance.instanceId)} className="button button-plain">
                  <FileText aria-hidden />
                  {t("instance.openForm")}
                </Link>
              </p>
            )}
          </section>
          {taskId !== "" && (
            <TaskFormCard
              key={taskId}
              instance={instance}
              taskId={taskId}
              caller={caller}
              focused={opened}
              onLook={look}
              onTaken={(taken) => {
                change({ task: "" }, "replace");
                onTaken(taken);
              }}
              onClose={() => change({ task: "" }, "replace")}
            />
          )}
          <section className="card" aria-labelledby="activity-title">
            <h2 id="activity-title">{t("instance.activity")}</h2>
            <CommentForm instance={instance} onAdded={look} />
            <ActivityList instance={instance} caller={caller} />
          </section>
        </div>
        <div className="side">
          <ChartCard instance={instance} caller={caller} name={summary.workflowName} moved={summary.updatedAt} tag={events.data?.tag} onReset={onTaken} />
          {pending.data && <PendingCard pending={pending.data} workflowId={instance.workflowId} />}
        </div>
      </div>
    </>
  );
}

/** What the instance holds besides its columns, for who wants to see all of it. */
function AllData({ instance }: { instance: Instance }) {
  const { t } = useTranslation();
  const data = useQuery({ queryKey: [...instanceKey(instance), "data"], queryFn: ({ signal }) => loadData(instance, signal) });
  return data.data && Object.keys(data.data).length > 0 ? (
    <details className="all-data">
      <summary>{t("instance.allData")}</summary>
      <PlainFacts data={data.data} />
    </details>
  ) : null;
}

/** The first of what else waits for the caller; after a decision it is the usual way on. */
function NextTask({ instance, decided = false }: { instance: Instance; decided?: boolean }) {
  const { t } = useTranslation();
  const tasks = useTasks({ scope: "all", q: "", sort: "due", workflowId: "", cursor: "", limit: 2 });
  const next = tasks.data?.tasks.find((task) => task.instanceId !== instance.instanceId);
  if (decided) {
    return tasks.data ? (
      <Link to={next ? taskPath(next) : ""} className="button button-plain">
        {next ? t("instance.nextTask", { title: next.title }) : t("instance.nothingElse")}
        <ChevronRight aria-hidden />
      </Link>
    ) : null;
  }
  return next ? (
    <p className="next-task">
      <Link to={taskPath(next)}>
        {t("instance.nextTask", { title: next.title })}
        <ChevronRight aria-hidden />
      </Link>
    </p>
  ) : null;
}

function PendingCard({ pending, workflowId }: { pending: Pending; workflowId: string }) {
  const { t } = useTranslation();
  const words = wordsOf(usePresentation(workflowId).data);
  if (pending.timers.length + pending.jobs.length + pending.deliveries.length === 0) {
    return null;
  }
  return (
    <section className="card" aria-labelledby="pending-title">
      <h2 id="pending-title">{t("instance.pending")}</h2>
      <dl className="machines">
        {pending.timers.map((timer) => (
          <div key={timer.id}>
            <dt>{timerWords(timer, words)}</dt>
            <dd>{timer.due !== null && <Time at={timer.due} as="due" />}</dd>
          </div>
        ))}
        {pending.jobs.map((job) => (
          <div key={job.jobId}>
            <dt>{t("instance.job", { type: readable(job.type) })}</dt>
            <dd>
              {jobWords(job)} {job.state === "waiting" && job.due && <Time at={job.due} as="due" />}
              {job.message && <p className="quiet">{job.message}</p>}
            </dd>
          </div>
        ))}
        {pending.deliveries.map((delivery) => (
          <div key={delivery.id}>
            <dt>
              {t("instance.delivery")}: {delivery.name === "" ? readable(delivery.kind) : readable(delivery.name)}
            </dt>
            <dd>{delivery.nextAttempt !== null && <Time at={delivery.nextAttempt} as="due" />}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
