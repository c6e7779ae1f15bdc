// What the tests of operations look at: instances of the real program that wait and
// are stuck, and long lists, a cluster and load that the tests give.
import assert from "node:assert/strict";
import { password } from "./service.mjs";

const hostile = '<img src=x onerror="window.hit=1"> & Söhne';

/** A claim whose timer divides by what nobody has checked. The second version asks a person instead. */
const claim = (version) => `
id: claim
version: ${version}
name: 'Claim <b onclick="window.hit=1">&</b>'
title: 'Claim of \${svcPublic.customer}'
columns: [{path: svcPublic.customer, label: {en: Customer, de: Kunde}}, {path: svcPublic.amount, label: {en: Amount, de: Betrag}}]
indexes: [svcPublic.amount]
context: {svcPublic: {customer: nobody, amount: 0, people: 0, note: '', share: 0}}
events:
  correct: {label: {en: Correct, de: Berichtigen}, data: {type: object, properties: {people: {type: integer}}, additionalProperties: false}}
stateMachines:
  main:
    initial: ${version === 1 ? "splitting" : "review"}
    states:
      ${version === 1 ? "splitting" : "review"}:
        label: {en: '${version === 1 ? "Being split" : "In review"}', de: '${version === 1 ? "Wird geteilt" : "In Prüfung"}'}
        tone: waiting
        on:
          correct: {}
          ${version === 1 ? "" : "settle: paid"}
        ${version === 1 ? "after: {PT1S: {target: paid, actions: [{assign: {svcPublic.share: '${svcPublic.amount / svcPublic.people}'}}]}}" : ""}
      paid: {type: final, label: {en: Paid, de: Bezahlt}, tone: good}
`;

/** A person who is signed in, as a program: asks, and wants a success. */
export async function session(service, user) {
  const answer = await fetch(`${service.root}session`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ user, password }) });
  assert.equal(answer.status, 200, await answer.text());
  const cookie = answer.headers.get("set-cookie").split(";")[0];
  return async (method, path, body, type = "application/json") => {
    const init = { method, headers: { Cookie: cookie } };
    if (body !== undefined) {
      init.headers["Content-Type"] = type;
      init.body = typeof body === "string" ? body : JSON.stringify(body);
    }
    const reply = await fetch(service.root + path, init);
    const text = await reply.text();
    assert.equal(reply.status, 200, `${method} ${path}: ${reply.status} ${text}`);
    return reply.headers.get("content-type").startsWith("application/json") ? JSON.parse(text) : text;
  };
}

/** Instances that wait, that are stuck, and one that has sent something which does not arrive. */
export async function seed(service) {
  const made = {};
  const [john, paulo] = [await session(service, "john.doe"), await session(service, "paulo.santos")];
  for (const version of [1, 2]) {
    await paulo("PUT", `workflow/api/v1/definitions/claim/${version}`, claim(version), "application/yaml");
    if (version === 1) {
      for (const [name, customer] of [["first", "Ann"], ["second", hostile], ["third", "Carl"]]) {
        made[name] = (await paulo("POST", "workflow/api/v1/create", { workflowId: "claim", data: { svcPublic: { customer, amount: 100 } } })).instanceId;
      }
    }
  }
  for (const [i, customer] of ["Dora", "Emil", "Fritz", "Gerda"].entries()) {
    await paulo("POST", "workflow/api/v1/create", { workflowId: "claim", data: { svcPublic: { customer, amount: 1000 * (i + 1) + 0.5 } } });
  }
  const order = (await john("POST", "workflow/api/v1/create", { workflowId: "purchase-order" })).instanceId;
  const item = { name: "Desk", quantity: 1, price: 100 };
  await john("POST", "workflow/api/v1/event", { workflowId: "purchase-order", instanceId: order, event: { name: "submit", data: { items: [item] } } });
  for (const until = Date.now() + 120_000; (await paulo("GET", "workflow/api/v1/incidents")).incidents.length < 3; ) {
    assert.ok(Date.now() < until, "the timers do not come");
    await new Promise((done) => setTimeout(done, 100));
  }
  return made;
}

/** Lists that are long, a cluster and load, as a service would have them. */
export async function answerLists(page) {
  const minutes = (n) => new Date(Date.now() + n * 60_000).toISOString();
  const json = (route, value) => route.fulfill({ contentType: "application/json", body: JSON.stringify(value) });
  const id = (n) => `01M7YZAB2GNTJFQE62690K${String(n).padStart(4, "0")}`;
  await page.route("**/workflow/api/v1/incidents?**", (route) => json(route, { next: "more", incidents: Array.from({ length: 16 }, (_, n) => ({
    id: `${id(n)}-2-0`, workflowId: n % 3 ? "leave-request" : "purchase-order", instanceId: id(n), event: n === 0 ? hostile : n % 2 ? "after.P2DT6H.review" : "supplier.accepted",
    error: n === 0 ? hostile : n % 2 ? "assign svcPublic.share: division by zero" : 'no such key: "orderNumber" in event.data of the answer', ts: minutes(-n * 150),
    ...(n > 13 ? { event: "", kind: n === 14 ? "tree" : "loop", version: 1, first: minutes(-n * 300), count: n } : {}),
  })) }));
  await page.route("**/workflow/api/v1/tasks?**", (route) => json(route, { next: "more", count: null, tasks: Array.from({ length: 14 }, (_, n) => ({
    taskId: `${id(n)}-2-0`, workflowId: n % 3 ? "leave-request" : "purchase-order", instanceId: id(n), stateMachineId: "main", nodeId: "review", title: n === 0 ? hostile : n % 2 ? "Waiting for approval" : "Being checked by several people at once",
    description: null, status: n % 3 ? "open" : "claimed", created: minutes(-n * 900), due: n % 4 ? minutes(n * n * 90 - 900) : null, priority: [50, 80, 20][n % 3], assignee: n % 3 ? null : "mary.major", assigneeName: n % 3 ? null : "Mary Major",
    candidates: { roles: n % 5 ? ["manager", "purchasing"] : [], users: n === 1 ? [hostile] : [], privileges: [] }, requester: null, requesterName: null, form: null, events: [], done: null,
  })) }));
  await page.route("**/workflow/api/v1/outbox?**", (route) => json(route, { next: null, outbox: Array.from({ length: 14 }, (_, n) => ({
    id: `${id(n)}-3-0`, kind: ["webhook", "mail", "invoke"][n % 3], workflowId: "purchase-order", instanceId: id(n), name: n === 0 ? hostile : n % 3 === 1 ? "" : n % 3 ? "supplier-check" : "supplier",
    state: n % 2 ? "pending" : "dead", attempts: n % 2 ? n % 5 : 9, created: minutes(-n * 90), nextAttempt: n % 2 ? minutes(n) : null, lastStatus: n % 2 ? 0 : 503, lastError: n === 0 ? hostile : n % 2 ? "connection refused" : "the answer was 503",
  })) }));
  await page.route("**/workflow/api/v1/timers?**", (route) => json(route, { next: "more", timers: Array.from({ length: 12 }, (_, n) => ({
    id: `${id(n)}-4-0`, event: n === 0 ? hostile : n % 2 ? "after.P2DT6H.review" : "remind", stateMachineId: n % 2 ? "main" : null, nodeId: n % 2 ? "review" : null, due: minutes(n * n * 90 + 5), incident: false,
    workflowId: n % 3 ? "leave-request" : "purchase-order", instanceId: id(n),
  })) }));
  await page.route("**/workflow/api/v1/jobs/types", (route) => json(route, { types: [
    { type: "charge-card", waiting: 12_345, running: 32, failed: 3, oldest: minutes(-75), workers: ["payments-1", "payments-2", hostile] },
    { type: "pay-supplier", waiting: 4, running: 0, failed: 0, oldest: minutes(-3_000), workers: [] },
    { type: "a-rather-long-name-of-a-type-that-nobody-has-shortened", waiting: 0, running: 0, failed: 0, oldest: null, workers: [] },
  ] }));
  await page.route("**/workflow/api/v1/jobs?**", (route) => json(route, { next: "more", jobs: Array.from({ length: 14 }, (_, n) => ({
    jobId: `${id(n)}-5-0`, type: "charge-card", state: ["waiting", "running", "failed"][n % 3], workflowId: n % 2 ? "leave-request" : "purchase-order", version: 1, instanceId: id(n), stateMachineId: "main", nodeId: "review",
    attempts: n % 4, attemptsLeft: n % 3 === 2 ? 0 : 3 - (n % 4), priority: [50, 80, 20][n % 3], created: minutes(-n * 90), ...(n % 3 === 0 && n > 5 ? { due: minutes(n) } : {}), ...(n % 3 === 1 ? { worker: "payments-1", deadline: minutes(2) } : {}),
    ...(n % 3 === 2 ? { worker: n === 2 ? hostile : "payments-2", message: n === 2 ? hostile : "the bank does not answer" } : {}),
  })) }));
  await page.route("**/workflow/api/v1/schedules", (route) => json(route, { schedules: [
    { workflowId: "stock-take", name: "monthly", cron: "0 7 1 * *", zone: "Europe/Berlin", paused: false, last: minutes(-30_000), next: minutes(8_000), lastError: "" },
    { workflowId: "report", name: "nightly", cron: "15 2 * * *", zone: "UTC", paused: true, last: minutes(-900), next: null, lastError: "" },
    { workflowId: "cleanup", name: "weekly", cron: "0 4 * * 0", zone: "America/New_York", paused: false, last: null, next: minutes(3_000), lastError: hostile },
  ] }));
  const started = minutes(-5_000);
  let read = 0;
  await page.route("**/admin/api/v1/health", (route) => {
    const n = read++;
    const wave = Math.round(400 * n + 300 * Math.sin(n / 2));
    const node = (of, more) => ({ id: `N0DE${of}`, alive: true, voter: true, version: "v1.4.0", led: 11, held: 32, lag: 0, settingsDiffer: false, ...more });
    return json(route, {
      ts: new Date(Date.parse(started) + 3000 * n).toISOString(), started, ready: true, build: { version: "v1.4.0", commit: "0123abcdef456789", go: "go1.26" },
      parts: [{ name: "gateway", ready: true, optional: false }, { name: "store", ready: true, optional: false }, { name: "repository", ready: false, optional: true, reason: hostile }, { name: "stored definitions", ready: true, optional: true }],
      cluster: { self: "N0DE1", short: [4], nodes: [node(1), node(2, { led: 12 }), node(3, { alive: false, led: 0, lag: 1234, settingsDiffer: true })] },
      requests: { answered: 5 * wave, failed: n > 4 ? 3 * (n - 4) : 0, shed: 0, inFlight: 3 + (n % 5), places: 2048, connections: 41, watchers: 7 },
      store: { diskBytes: 734_003_200, freeBytes: 91_268_055_040, waiting: n % 3, committed: 2 * wave, syncs: 99, syncMicroseconds: 840, stalls: 0, faults: 0 },
      work: { awake: 812 + 9 * n, creates: wave / 10, events: wave, incidents: 3, fired: 17, lateMilliseconds: 4, delivered: 1_204, dead: 7 },
    });
  });
}
