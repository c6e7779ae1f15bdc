// A worker for jobs in TypeScript, over openapi-fetch with the types of gateway/openapi.yaml. It behaves as that of the
// client for Go: leases are extended by themselves, outcomes are told again while the service is away, and a stop waits
// for the jobs that are being done. It uses nothing of Node and nothing of a browser but fetch.
import type { Client } from "openapi-fetch";
import type { components, paths } from "../src/api/openapi";

export type Job = components["schemas"]["Job"];
type Failure = components["schemas"]["JobFailures"]["jobs"][number];
type Result = components["schemas"]["JobResults"]["results"][number];

/** Throw it for a failed attempt after which there are no more. */
export class Final extends Error {}

/** Throw it to give a job back: the attempt does not count, and the job comes back after the delay of its type. */
export class Later extends Error {}

/** What the service has refused, in its own words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
  /** Asking again changes nothing. */
  get final(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 408 && this.status !== 429;
  }
}

export interface WorkerOptions {
  client: Client<paths>;
  types: string[];
  /** A name for lists. */
  name?: string;
  /** How many jobs it has at a time: 1. */
  concurrency?: number;
  /** How long each lease is, in seconds: 60. It is extended as long as handle runs. */
  lease?: number;
  /**
   * Does a job, and may run for several at a time. A job can come twice, with the same jobId. What it returns is the output; what
   * it throws is a failed attempt. The signal is aborted when the job is no longer this worker's.
   */
  handle: (job: Job, signal: AbortSignal) => unknown;
  /** Hears what went wrong with the service and is tried again, and of jobs that were lost. */
  onError?: (fault: unknown) => void;
}

const pollSeconds = 20;
const pauseMin = 100;
const pauseMax = 30_000;

const pauseAfter = (failures: number) => Math.min(pauseMin * 2 ** Math.min(failures, 16), pauseMax) * (1 + Math.random() / 2);

/** Resolves after a time, or as soon as the signal is aborted. */
const sleep = (milliseconds: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal?.aborted) {
      return resolve();
    }
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end);
  });

/** The answer of a call, or what the service has refused. */
async function answered<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (data === undefined) {
    throw new Refused(response.status, (error as { message?: string } | undefined)?.message ?? `status ${response.status}`);
  }
  return data;
}

/** Of a request for one job. */
function taken({ results: [result] }: { results: Result[] }): void {
  if (result?.status !== 200) {
    throw new Refused(result?.status ?? 0, result?.message ?? "no result");
  }
}

export class Worker {
  private readonly running = new Set<Promise<void>>();

  constructor(private readonly options: WorkerOptions) {}

  /** Takes jobs until the signal is aborted, and resolves when those that it has are done. It rejects, in the same way, with a Refused. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, types, name, concurrency = 1, lease = 60, onError } = this.options;
    try {
      for (let failures = 0; !signal.aborted; ) {
        if (this.running.size >= concurrency) {
          await Promise.race([...this.running, aborted(signal)]);
          continue;
        }
        try {
          const body = { types, max: Math.min(concurrency - this.running.size, 1000), lease: `PT${lease}S`, wait: `PT${pollSeconds}S`, ...(name === undefined ? {} : { worker: name }) };
          const { jobs } = await answered(client.POST("/workflow/api/v1/jobs/activate", { body, signal }));
          failures = 0;
          for (const job of jobs) {
            const work = this.work(job, lease).finally(() => this.running.delete(work));
            this.running.add(work);
          }
        } catch (fault) {
          if (signal.aborted) {
            break;
          }
          if (fault instanceof Refused && fault.final) {
            throw fault;
          }
          onError?.(fault);
          await sleep(pauseAfter(failures++), signal);
        }
      }
    } finally {
      await Promise.all(this.running);
    }
  }

  private async work(job: Job, lease: number): Promise<void> {
    const lost = new AbortController();
    const over = new AbortController();
    const keeping = this.keep(job, lease, lost, over.signal);
    try {
      let outcome: { output: unknown } | { failed: Partial<Failure> };
      try {
        outcome = { output: await this.options.handle(job, lost.signal) };
      } catch (fault) {
        outcome = { failed: failureOf(fault) };
      }
      for (let failures = 0; ; failures++) {
        if (lost.signal.aborted) {
          throw lost.signal.reason;
        }
        try {
          return await this.tell(job, outcome);
        } catch (fault) {
          if (!(fault instanceof Refused && fault.final)) {
            this.options.onError?.(fault);
            await sleep(pauseAfter(failures), lost.signal);
          } else if ("failed" in outcome || fault.status === 404 || fault.status === 409) {
            throw fault;
          } else {
            outcome = { failed: { message: fault.message } }; // it does not take the output
          }
        }
      }
    } catch (fault) {
      this.options.onError?.(fault);
    } finally {
      over.abort();
      await keeping;
    }
  }

  private async tell({ jobId, lease }: Job, outcome: { output: unknown } | { failed: Partial<Failure> }): Promise<void> {
    const { client } = this.options;
    if ("failed" in outcome) {
      return taken(await answered(client.POST("/workflow/api/v1/jobs/fail", { body: { jobs: [{ jobId, lease, ...outcome.failed }] } })));
    }
    const output = outcome.output === undefined ? {} : { output: outcome.output as NonNullable<Job["data"]> };
    taken(await answered(client.POST("/workflow/api/v1/jobs/complete", { body: { jobs: [{ jobId, lease, ...output }] } })));
  }

  /** Extends the lease of a job when half of it is over, at the latest. */
  private async keep(job: Job, lease: number, lost: AbortController, over: AbortSignal): Promise<void> {
    // NB: the type may bound the lease; the clock of the service may be another, so at most half of what was asked for.
    const lasts = Math.min(lease * 1000, Math.max(Date.parse(job.deadline) - Date.now(), 400));
    let wait = lasts / 2;
    for (let failures = 0; ; ) {
      await sleep(wait, over);
      if (over.aborted) {
        return;
      }
      try {
        const by = `PT${Math.max(Math.round(lasts / 1000), 1)}S`;
        taken(await answered(this.options.client.POST("/workflow/api/v1/jobs/extend", { body: { jobs: [{ jobId: job.jobId, lease: job.lease, by }] } })));
        [wait, failures] = [lasts / 2, 0];
      } catch (fault) {
        if (over.aborted) {
          return;
        }
        if (fault instanceof Refused && fault.final) {
          return lost.abort(fault);
        }
        this.options.onError?.(fault);
        wait = Math.min(pauseAfter(failures++), lasts / 2);
      }
    }
  }
}

const aborted = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

function failureOf(fault: unknown): Partial<Failure> {
  const message = fault instanceof Error ? fault.message : String(fault);
  return { message, ...(fault instanceof Final ? { final: true } : {}), ...(fault instanceof Later ? { later: true } : {}) };
}
