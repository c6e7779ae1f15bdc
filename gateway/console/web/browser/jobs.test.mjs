// Work that waits for programs, as operators and those who wait for it see it. The test is the worker.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, hasFocus, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { session } from "./operations.mjs";
import { startService } from "./service.mjs";

const hostile = '<img src=x onerror="window.hit=1"> & Söhne';
const invoice = `
id: invoice
version: 1
name: Invoice
jobs:
  charge-card: {allow: {roles: [purchasing]}, retry: {limit: 1, delay: PT1H}}
stateMachines:
  main:
    states:
      charging:
        label: {en: Being charged, de: Wird abgebucht}
        on: {hurry: asking}
        invoke: {job: charge-card, data: {amount: 100}, onDone: paid}
      asking:
        label: {en: Being charged again, de: Wird erneut abgebucht}
        invoke: {job: charge-card, onDone: paid, onError: refused}
      paid: {type: final, label: {en: Paid, de: Bezahlt}, tone: good}
      refused: {type: final, label: {en: Not paid, de: Nicht bezahlt}, tone: bad}
`;

let browser, service, paulo, ids;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
  paulo = await session(service, "paulo.santos");
  await paulo("PUT", "workflow/api/v1/definitions/invoice/1", invoice, "application/yaml");
  ids = [];
  for (let i = 0; i < 3; i++) {
    ids.push((await paulo("POST", "workflow/api/v1/create", { workflowId: "invoice" })).instanceId);
  }
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const take = async (worker) => (await paulo("POST", "workflow/api/v1/jobs/activate", { types: ["charge-card"], worker, max: 1, lease: "PT5M", wait: "PT20S" })).jobs[0];

test("an operator sees who works, why a job has failed, retries it and cancels another one", async () => {
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", "operations?section=jobs");
  const type = page.getByRole("row").filter({ hasText: "charge-card" });
  await type.getByRole("cell", { name: "3", exact: true }).waitFor();
  await type.getByText("No worker").waitFor();
  await look(operator, "operations-jobs-nobody");
  const { jobId, lease, instanceId } = await take("till-1");
  const { results } = await paulo("POST", "workflow/api/v1/jobs/fail", { jobs: [{ jobId, lease, message: hostile, final: true }] });
  assert.equal(results[0].status, 200, JSON.stringify(results));
  await page.reload();
  await type.getByText("till-1").waitFor();
  await type.getByRole("cell", { name: "2", exact: true }).waitFor();
  await type.getByRole("link").click();

  await hasFocus(page.getByRole("heading", { name: "charge-card" }));
  await page.getByRole("row").nth(3).waitFor();
  await page.getByRole("group", { name: "Show" }).getByText("Failed").click();
  const row = page.getByRole("row").filter({ hasText: instanceId.slice(-6) });
  await row.getByText(hostile).waitFor();
  assert.equal(await page.getByRole("row").count(), 2, "the others have not failed");
  await look(operator, "operations-jobs-failed");
  await row.getByRole("link", { name: "Being charged" }).click();
  const card = page.getByRole("region", { name: "Jobs" });
  await card.getByText("last at till-1").waitFor();
  await look(operator, "operations-jobs-inspect");
  await page.goBack();
  await row.getByRole("button", { name: /^Retry: charge-card/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByText(/waits for a worker again\.$/).waitFor();
  await hasFocus(page.locator(".page-news .notice"));
  await page.getByText("There are no jobs of this type in this state.").waitFor();

  // The other one goes another way when it is canceled.
  await paulo("POST", "workflow/api/v1/event", { workflowId: "invoice", instanceId: ids[2], event: { name: "hurry" } });
  await page.getByRole("group", { name: "Show" }).getByText("All").click();
  const cancel = page.getByRole("row").filter({ hasText: "Being charged again" }).getByRole("button", { name: /^Cancel: charge-card/ });
  await cancel.click();
  const dialog = page.getByRole("dialog", { name: "Cancel the job?" });
  await dialog.waitFor();
  await look(operator, "operations-jobs-cancel");
  await page.keyboard.press("Escape");
  await hasFocus(cancel);
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Cancel the job" }).click();
  await page.getByText(/was canceled\.$/).waitFor();
  await cancel.waitFor({ state: "detached" });
  const { state } = await paulo("GET", `workflow/api/v1/instance/invoice/${ids[2]}`);
  assert.equal(state.states[0].nodeId, "refused");
  assert.equal(await page.evaluate(() => window.hit), undefined, "texts of workers are text");
  await closeWindow(operator);
});

test("whoever waits for a program sees which, who has it, at which attempt, and what it said last", async () => {
  const { instanceId } = await paulo("POST", "workflow/api/v1/create", { workflowId: "invoice" });
  const asks = { locale: "de-DE", viewport: { width: 320, height: 700 } };
  const reader = await openWindow(browser, service, asks);
  const { page } = reader;
  await signIn(reader, "paulo.santos", `instances/invoice/${instanceId}`);
  const card = page.getByRole("region", { name: "Steht aus" });
  await card.getByText("Arbeit eines Programms: Charge card").waitFor();
  await card.getByText("Wartet auf einen Worker").waitFor();
  let job;
  do {
    job = await take("till-2"); // those of the other test come first
  } while (job.instanceId !== instanceId);
  await card.getByText("Versuch 1, bei till-2").waitFor(); // nobody loads the page again
  await paulo("POST", "workflow/api/v1/jobs/fail", { jobs: [{ jobId: job.jobId, lease: job.lease, message: "die Bank antwortet nicht", retryIn: "PT0S" }] });
  await card.getByText("Wartet auf Versuch 2").waitFor();
  await card.getByText("die Bank antwortet nicht").waitFor();
  await look(reader, "instance-job");
  const again = await take("till-3");
  assert.equal(again.instanceId, instanceId);
  await paulo("POST", "workflow/api/v1/jobs/complete", { jobs: [{ jobId: again.jobId, lease: again.lease, output: {} }] });
  await page.getByText("Bezahlt", { exact: true }).first().waitFor();
  await card.waitFor({ state: "detached" });
  await closeWindow(reader);
});

test("whoever may have jobs, and nothing else of the service, sees and retries them", async () => {
  const { instanceId } = await paulo("POST", "workflow/api/v1/create", { workflowId: "invoice" });
  let job;
  do {
    job = await take("till-4"); // those of the other tests come first
  } while (job.instanceId !== instanceId);
  await paulo("POST", "workflow/api/v1/jobs/fail", { jobs: [{ jobId: job.jobId, lease: job.lease, message: "no paper", final: true }] });
  await service.change("identity.yaml", (text) => text.replace("  - id: john.doe\n", "  - id: john.doe\n    privileges: [mod-jobs]\n"));
  const keeper = await openWindow(browser, service);
  const { page } = keeper;
  await signIn(keeper, "john.doe");
  await page.getByRole("link", { name: "Operations" }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  assert.deepEqual(await page.getByRole("navigation", { name: "Sections" }).getByRole("link").allInnerTexts(), ["Jobs"]);
  await page.getByRole("link", { name: "charge-card" }).click();
  const row = page.getByRole("row").filter({ hasText: instanceId.slice(-6) });
  await row.getByText("till-4").waitFor();
  assert.equal(await row.getByRole("link").count(), 0, "instances are not theirs");
  await look(keeper, "operations-jobs-alone");
  await row.getByRole("button", { name: /^Retry: charge-card/ }).click();
  await page.getByText(/waits for a worker again\.$/).waitFor();
  await closeWindow(keeper);
});
