import { useQueryClient } from "@tanstack/react-query";
import { ChevronLeft, CircleCheck, Cog } from "lucide-react";
import { type ReactNode, useState } from "react";
import { type Caller, privilege } from "../api/types";
import { Badge } from "../kit/Badge";
import { Button } from "../kit/Button";
import { type ColumnOf, DataTable } from "../kit/DataTable";
import { Empty } from "../kit/Notice";
import { Switch } from "../kit/Switch";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { formatNumber } from "../words";
import { inspectPath, pathOf } from "./address";
import { changeJob, type Job, type JobAction, type JobType, type PendingJob } from "./api";
import { Confirm, InstanceOf, Listed, Loaded, reasonFor, shortId, statusOf, type Told, useNews } from "./parts";
import { operationsKey, useJobs, useJobTypes, useWords } from "./queries";
import { type Translate, useText } from "./text";

/** Work that waits for programs: by type, and the jobs of one type. */
export function JobsSection({ caller }: { caller: Caller }) {
  const [asked] = useQueryPart();
  const type = asked.get("type") ?? "";
  return type === "" ? <Types /> : <OneType key={type} type={type} inspects={caller.privileges.includes(privilege.workflows)} />;
}

function Types() {
  const t = useText();
  const types = useJobTypes();
  return (
    <Loaded query={types}>
      {(list) =>
        list.length === 0 ? <Empty sign={<Cog aria-hidden />} title={t("jobs.noTypes")} text={t("jobs.noTypesText")} /> : <DataTable label={t("section.jobs")} columns={typeColumns(t)} rows={list} rowKey={({ type }) => type} />
      }
    </Loaded>
  );
}

function typeColumns(t: Translate): ColumnOf<JobType>[] {
  const count = (key: "waiting" | "running" | "failed"): ColumnOf<JobType> => ({ key, title: t(`jobs.states.${key}`), narrow: true, named: true, end: true, cell: (of) => formatNumber(of[key]) });
  return [
    {
      key: "type",
      title: t("jobs.type"),
      head: true,
      cell: ({ type }) => (
        <Link to={pathOf("jobs", { type })} className="row-link">
          {type}
        </Link>
      ),
    },
    count("waiting"),
    count("running"),
    { ...count("failed"), cell: ({ failed }) => (failed > 0 ? <Badge tone="bad">{formatNumber(failed)}</Badge> : formatNumber(failed)) },
    { key: "oldest", title: t("jobs.oldest"), narrow: true, named: true, cell: ({ oldest }) => oldest && <Time at={oldest} /> },
    { key: "workers", title: t("jobs.workers"), named: true, cell: (of) => (of.workers.length > 0 ? of.workers.join(", ") : of.waiting > 0 ? <Badge tone="bad">{t("jobs.nobody")}</Badge> : <span className="quiet">–</span>) },
  ];
}

const states = ["all", "waiting", "running", "failed"] as const;

function OneType({ type, inspects }: { type: string; inspects: boolean }) {
  const t = useText();
  const [asked, change] = useQueryPart();
  const state = states.find((each) => each === asked.get("state")) ?? "all";
  const jobs = useJobs(type, state === "all" ? "" : state, asked.get("cursor") ?? "");
  const words = useWords((jobs.data?.jobs ?? []).map(({ workflowId }) => workflowId));
  const { news, tell } = useNews();
  const repair = useJobRepair(tell);
  const [cancelling, setCancelling] = useState<Job | null>(null);
  const placeOf = (of: Job) => {
    const node = words(of.workflowId).node(of.nodeId);
    return inspects ? (
      <Link to={inspectPath(of.workflowId, of.instanceId)} className="row-link">
        {node}
      </Link>
    ) : (
      node
    );
  };
  return (
    <>
      <p className="trail">
        <Link to={pathOf("jobs")}>
          <ChevronLeft aria-hidden />
          {t("section.jobs")}
        </Link>
      </p>
      <div className="ops-head">
        <h2 id="section-title" tabIndex={-1}>{type}</h2>
      </div>
      <div className="tools">
        <Switch
          label={t("outbox.show")}
          options={states.map((key) => ({ key, label: key === "all" ? t("outbox.all") : t(`jobs.states.${key}`) }))}
          selected={state}
          onSelect={(key) => change({ state: key === "all" ? "" : key, cursor: "" })}
        />
      </div>
      {news}
      <Listed
        label={t("section.jobs")}
        query={jobs}
        rows={({ jobs: list }) => list}
        next={({ next }) => next}
        columns={jobColumns(t, placeOf, (of) => void repair(of, "retry"), setCancelling)}
        rowKey={({ jobId }) => jobId}
        empty={{ sign: <CircleCheck aria-hidden />, title: t("jobs.emptyTitle"), text: t("jobs.emptyText") }}
      />
      {cancelling && <CancelJob of={cancelling} onCancel={() => repair(cancelling, "cancel")} onClose={() => setCancelling(null)} />}
    </>
  );
}

function jobColumns(t: Translate, placeOf: (of: Job) => ReactNode, retry: (of: Job) => void, cancel: (of: Job) => void): ColumnOf<Job>[] {
  return [
    {
      key: "instance",
      title: t("incidents.instance"),
      head: true,
      cell: (of) => (
        <>
          {placeOf(of)}
          <span className="row-text">
            <InstanceOf workflowId={of.workflowId} instanceId={of.instanceId} />
          </span>
          {of.message && <span className="row-text ops-error">{of.message}</span>}
        </>
      ),
    },
    { key: "state", title: t("outbox.state"), narrow: true, cell: (of) => <JobState of={of} /> },
    { key: "attempts", title: t("outbox.attempts"), narrow: true, named: true, end: true, cell: (of) => attemptsText(of, t) },
    { key: "priority", title: t("tasks.fields.priority"), narrow: true, named: true, end: true, cell: (of) => formatNumber(of.priority) },
    { key: "created", title: t("outbox.created"), narrow: true, named: true, cell: (of) => <Time at={of.created} /> },
    { key: "actions", title: t("actions"), narrow: true, cell: (of) => <JobButtons of={of} onRetry={() => retry(of)} onCancel={() => cancel(of)} /> },
  ];
}

/** The jobs that one instance waits for. */
export function JobItems({ jobs, tell }: { jobs: PendingJob[]; tell: (told: Told) => void }) {
  const t = useText();
  const repair = useJobRepair(tell);
  const [cancelling, setCancelling] = useState<PendingJob | null>(null);
  return (
    <>
      <ul className="ops-items">
        {jobs.map((job) => (
          <li key={job.jobId}>
            <div className="ops-item">
              <p className="ops-strong">{job.type}</p>
              {job.message && <p className="ops-error">{job.message}</p>}
              <div className="ops-facts">
                <JobState of={job} />
                <span>
                  {t("outbox.attempts")} {attemptsText(job, t)}
                </span>
              </div>
            </div>
            <JobButtons of={job} onRetry={() => void repair(job, "retry")} onCancel={() => setCancelling(job)} />
          </li>
        ))}
      </ul>
      {cancelling && <CancelJob of={cancelling} onCancel={() => repair(cancelling, "cancel")} onClose={() => setCancelling(null)} />}
    </>
  );
}

const attemptsText = (of: Pick<Job, "attempts" | "attemptsLeft">, t: Translate) => t("jobs.attempts", { attempts: formatNumber(of.attempts), left: formatNumber(of.attemptsLeft) });

/** Which one a job is, where many have the same type. */
const jobName = (of: Pick<Job, "type" | "jobId">) => `${of.type}, ${shortId(of.jobId)}`;

type State = Pick<Job, "state" | "due" | "deadline" | "worker">;

/** Where a job is, who has it, and until when. */
function JobState({ of }: { of: State }) {
  const t = useText();
  const until = of.state === "running" ? of.deadline : of.state === "waiting" ? of.due : undefined;
  return (
    <span className="ops-state">
      <Badge tone={of.state === "failed" ? "bad" : of.state === "running" ? "active" : "waiting"}>{t(`jobs.states.${of.state}`)}</Badge>
      {of.worker && <span className="row-text ops-worker">{t(of.state === "running" ? "jobs.at" : "jobs.was", { worker: of.worker })}</span>}
      {until && (
        <span className="row-text">
          {t(of.state === "running" ? "jobs.until" : "outbox.next")} <Time at={until} as="due" />
        </span>
      )}
    </span>
  );
}

/** What can be done about a job. One that has failed ends with its incident. */
function JobButtons({ of, onRetry, onCancel }: { of: Pick<Job, "type" | "jobId" | "state">; onRetry: () => void; onCancel: () => void }) {
  const t = useText();
  return (
    <span className="row-actions">
      {of.state === "failed" ? (
        <Button small aria-label={t("actionOf", { action: t("retry"), name: jobName(of) })} onPress={onRetry}>
          {t("retry")}
        </Button>
      ) : (
        <Button small aria-label={t("actionOf", { action: t("bulk.cancel"), name: jobName(of) })} onPress={onCancel}>
          {t("bulk.cancel")}
        </Button>
      )}
    </span>
  );
}

function CancelJob({ of, onCancel, onClose }: { of: Pick<Job, "type" | "jobId">; onCancel: () => Promise<void>; onClose: () => void }) {
  const t = useText();
  return <Confirm title={t("jobs.cancelTitle")} text={t("jobs.cancelText", { name: jobName(of) })} yes={t("jobs.cancelYes")} no={t("jobs.keep")} danger onYes={onCancel} onClose={onClose} />;
}

/** Retries or cancels jobs, and tells what became of it. */
function useJobRepair(tell: (told: Told) => void) {
  const t = useText();
  const queries = useQueryClient();
  return async (of: Pick<Job, "type" | "jobId">, action: JobAction) => {
    const name = jobName(of);
    try {
      await changeJob(of.jobId, action);
      tell({ tone: "good", title: t(action === "retry" ? "jobs.retried" : "jobs.cancelled", { name }) });
    } catch (fault) {
      tell([404, 409].includes(statusOf(fault)) ? { tone: "info", title: t("jobs.gone", { name }) } : { tone: "bad", title: t("jobs.unchanged", { name }), detail: reasonFor(fault) });
    }
    await Promise.all([queries.invalidateQueries({ queryKey: operationsKey }), queries.invalidateQueries({ queryKey: ["instance"] })]);
  };
}
