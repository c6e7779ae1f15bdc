// The worker for jobs, against a service that is a function, on the clock of the test.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import createClient from "openapi-fetch";
import { Final, type Job, Later, Refused, Worker, type WorkerOptions } from "../client/worker";
import type { paths } from "../src/api/openapi";

const seconds = 1000;

/** A service with some jobs, which go when they were given. It hears actions as "complete j {…}". */
class Board {
  readonly told: string[] = [];
  /** How an action is refused; 0: it is not, -1: nobody answers. */
  refuse: (action: string, job: string) => number = () => 0;
  constructor(readonly waiting: string[]) {}

  readonly fetch = async (request: Request): Promise<Response> => {
    const action = request.url.split("/").pop() ?? "";
    const body = (await request.json()) as { max?: number; jobs: { jobId: string; lease: string }[] };
    const [asked] = body.jobs ?? [];
    const status = this.refuse(action, asked?.jobId ?? "");
    if (status < 0) {
      throw new TypeError("fetch failed");
    }
    if (action === "activate") {
      if (status > 0) {
        return Response.json({ error: "AccessDenied", message: "no" }, { status });
      }
      const jobs = this.waiting.splice(0, body.max);
      if (jobs.length === 0) {
        await new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason)));
      }
      return Response.json({ jobs: jobs.map((jobId) => ({ jobId, lease: "l", deadline: new Date(Date.now() + 10 * seconds).toISOString(), data: {} })) });
    }
    const said = JSON.stringify(asked, (name, value: unknown) => (name === "jobId" || name === "lease" ? undefined : value));
    this.told.push(`${action} ${asked?.jobId} ${said}`);
    return Response.json({ results: [status === 0 ? { status: 200 } : { status, error: "Refused", message: `refused with ${status}` }] });
  };
}

/** Lets everything go on that waits for no timer. */
const settled = async () => {
  for (let n = 0; n < 50; n++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
};

/** Moves the clock, second by second. */
const pass = async (t: TestContext, time: number) => {
  for (let at = 0; at < time; at += seconds) {
    t.mock.timers.tick(seconds);
    await settled();
  }
};

function working(t: TestContext, board: Board, options: Partial<WorkerOptions>) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const stop = new AbortController();
  const faults: unknown[] = [];
  const client = createClient<paths>({ baseUrl: "http://board", fetch: board.fetch });
  const ended = new Worker({ client, types: ["t"], lease: 10, handle: () => undefined, onError: (fault) => faults.push(fault), ...options }).run(stop.signal);
  return { faults, ended, stop: () => (stop.abort(), ended) };
}

const throwing = (fault: unknown) => () => {
  throw fault;
};

for (const [what, handle, refused, want] of [
  ["nothing", () => undefined, 0, ["complete j {}"]],
  ["an output", async () => ({ id: 1 }), 0, ['complete j {"output":{"id":1}}']],
  ["an error", throwing(new Error("blocked")), 0, ['fail j {"message":"blocked"}']],
  ["final", throwing(new Final("blocked")), 0, ['fail j {"message":"blocked","final":true}']],
  ["later", throwing(new Later("not now")), 0, ['fail j {"message":"not now","later":true}']],
  ["it does not fit", () => 7, 422, ['complete j {"output":7}', 'fail j {"message":"refused with 422"}']],
  ["it is lost", () => 7, 409, ['complete j {"output":7}']],
] as const) {
  test(`a worker tells what comes of a job: ${what}`, async (t) => {
    const board = new Board(["j"]);
    board.refuse = (action) => (action === "complete" ? refused : 0);
    const worker = working(t, board, { handle });
    await settled();
    await worker.stop();
    assert.deepEqual(board.told, want);
  });
}

test("a worker extends leases, and drops what it has lost", async (t) => {
  const board = new Board(["long", "lost"]);
  board.refuse = (action, job) => (action === "extend" && job === "lost" ? 409 : 0);
  const worker = working(t, board, {
    concurrency: 2,
    handle: (job: Job, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve("dropped"));
        setTimeout(() => resolve("done"), 30 * seconds);
      }).then((how) => `${job.jobId} ${how as string}`),
  });
  await settled();
  await pass(t, 31 * seconds);
  await worker.stop();
  assert.ok(board.told.filter((line) => line === 'extend long {"by":"PT10S"}').length >= 5);
  assert.deepEqual(board.told.filter((line) => !line.startsWith("extend")), ['complete long {"output":"long done"}']);
  assert.deepEqual(
    worker.faults.map((fault) => (fault as Refused).status),
    [409],
  );
});

test("a worker tells again what nobody heard, and is drained when it is stopped", async (t) => {
  const board = new Board(["a", "b"]);
  let away = true;
  board.refuse = (action) => (action === "complete" && away ? -1 : 0);
  const worker = working(t, board, {});
  await settled();
  let over = false;
  const ended = worker.stop().then(() => (over = true));
  await pass(t, 3 * seconds);
  assert.deepEqual([board.told, over], [[], false]); // half of the lease is 5 s
  away = false;
  await pass(t, 10 * seconds);
  await ended;
  const told = board.told.filter((line) => !line.startsWith("extend")); // the lease may have been as well
  assert.deepEqual([told, board.waiting], [["complete a {}"], ["b"]]);
});

test("a worker that is refused ends", async (t) => {
  const board = new Board([]);
  board.refuse = () => 403;
  await assert.rejects(working(t, board, {}).ended, (fault: Refused) => fault.status === 403);
});
