// Whoever runs the service changes many things at once: jobs that are paused and canceled, versions, what has failed, and tokens.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, hasFocus, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { session } from "./operations.mjs";
import { startService } from "./service.mjs";

let browser, service, paulo;

const definition = (id, name, version, svcPublic, states) => `{id: ${id}, name: ${name}, version: ${version}, context: {svcPublic: ${svcPublic}}, stateMachines: {main: {states: ${states}}}}`;
const counter = definition("counter", "Counter", 1, "{count: 0}", "{counting: {on: {add: {actions: [{assign: {svcPublic.count: '${svcPublic.count + 1}'}}]}}}}");
/** Its timer divides by what nobody has checked. */
const share = definition("share", "Share", 1, "{amount: 100, people: 0, each: 0}",
  "{splitting: {on: {correct: {}}, after: {PT1S: {target: paid, actions: [{assign: {svcPublic.each: '${svcPublic.amount / svcPublic.people}'}}]}}}, paid: {type: final}}");
const ticket = (version, state, label) => definition("ticket", "Ticket", version, "{wait: false}",
  `{sorting: {always: [{guard: '\${svcPublic.wait}', target: waiting}, {target: ${state}}]}, ${state}: {label: ${label}, on: {close: closed}}, waiting: {label: Waiting, on: {close: closed}}, closed: {type: final}}`);

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
  paulo = await session(service, "paulo.santos");
  for (const [id, text] of Object.entries({ counter, share, ticket: ticket(1, "checking", "Being checked") })) {
    await paulo("PUT", `workflow/api/v1/definitions/${id}/1`, text, "application/yaml");
  }
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

async function create(workflowId, number, svcPublic = {}) {
  const { results } = await paulo("POST", "workflow/api/v1/events", Array.from({ length: number }, () => ({ workflowId, data: { svcPublic } })));
  assert.ok(results.every(({ status }) => status === 200), JSON.stringify(results[0]));
  return results.map(({ instanceId }) => instanceId);
}

const counted = async (workflowId, filter) => (await paulo("GET", `workflow/api/v1/instances/${workflowId}?limit=1&count=true&filter=${encodeURIComponent(JSON.stringify(filter))}`)).count;

test("a bulk job is paused, goes on, and is canceled, and what it has not changed stays", async () => {
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", "operations?section=bulk&new=1&workflow=counter");
  const job = page.getByRole("table", { name: "Bulk jobs" }).getByRole("row").nth(1); // the newest
  const form = page.getByRole("region", { name: "New bulk job" });
  let total = 0;
  /** Starts a job and pauses it; one that was quicker is followed by one that is longer. */
  const pausedJob = async () => {
    for (;;) {
      total += (await create("counter", 4_000)).length;
      await page.goto(`${service.root}operations?section=bulk&new=1&workflow=counter`);
      await form.getByLabel("Event", { exact: true }).fill("add");
      await form.getByRole("button", { name: "Start" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Start" }).click();
      await page.getByText("“Send “add”” was started.").waitFor();
      const pause = job.getByRole("button", { name: "Pause: Send “add”, Counter" });
      await pause.or(job.getByText("Done")).first().waitFor();
      await pause.click({ timeout: 5_000 }).catch(() => {}); // it is over
      await page.getByText(/is paused\.$|could not be changed\.$/).or(job.getByText("Done")).first().waitFor();
      if (await job.getByText("Paused").waitFor({ timeout: 5_000 }).then(() => true, () => false)) {
        return;
      }
    }
  };
  const left = () => counted("counter", { "svcPublic.count": 0 });
  /** What is left when those whose turn had begun are finished. */
  const settled = async () => {
    let [now, last] = [await left(), -1];
    while (now !== last) {
      await new Promise((done) => setTimeout(done, 500));
      [now, last] = [await left(), now];
    }
    return now;
  };

  await pausedJob();
  await hasFocus(page.locator(".page-news .notice"));
  await look(operator, "operations-bulk-paused");
  assert.ok((await settled()) > 0, "a paused job leaves some");
  await page.reload();
  await job.getByText("Paused").waitFor();
  assert.equal(await job.getByRole("progressbar").evaluate((bar) => bar.value < bar.max), true);
  await job.getByRole("button", { name: /^Resume/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("“Send “add”, Counter” goes on.").waitFor();
  await job.getByText("Done").waitFor();
  assert.equal(await left(), 0);

  await pausedJob();
  await job.getByRole("button", { name: /^Cancel/ }).click();
  await page.getByRole("dialog", { name: "Cancel the bulk job?" }).getByRole("button", { name: "Let it run" }).click();
  await job.getByText("Paused").waitFor();
  await job.getByRole("button", { name: /^Cancel/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the job" }).click();
  await page.getByText("“Send “add”, Counter” was canceled.").waitFor();
  await job.getByText("Canceled").waitFor();
  assert.equal(await job.getByRole("button").count(), 0, "nothing can be done about it any more");
  const untouched = await settled();
  assert.ok(untouched > 0 && untouched < total, `${untouched} of ${total} were never changed`);
  await look(operator, "operations-bulk-canceled");
  await closeWindow(operator);
});

test("many instances are moved to another version, with a place for each state", async () => {
  const ids = [...(await create("ticket", 3)), ...(await create("ticket", 1, { wait: true }))];
  await paulo("PUT", "workflow/api/v1/definitions/ticket/2", ticket(2, "review", "In review"), "application/yaml");
  const operator = await openWindow(browser, service, { colorScheme: "dark" });
  const { page } = operator;
  await signIn(operator, "paulo.santos", "operations?section=bulk&new=1&workflow=ticket");
  const form = page.getByRole("region", { name: "New bulk job" });
  await form.getByLabel("What to do").selectOption({ label: "Move to another version" });
  await form.getByText("1 of 4 can be moved.").waitFor();
  await form.getByText(/no node "checking"/).waitFor();
  await look(operator, "operations-bulk-move-dark");
  await form.getByText("Other states").click();
  assert.equal(await form.getByLabel("“Waiting” becomes").inputValue(), "waiting");
  await form.getByLabel("“Being checked” becomes").selectOption({ label: "In review" });
  await form.getByText("4 of 4 can be moved.").waitFor();
  await page.setViewportSize({ width: 320, height: 700 });
  assert.equal(await isTooWide(page), false, "it scrolls sideways");
  await look(operator, "operations-bulk-move-small");
  await form.getByRole("button", { name: "Start" }).click();
  await page.getByRole("dialog", { name: "Move to another version?" }).getByRole("button", { name: "Start" }).click();
  await page.getByRole("row").filter({ hasText: "Move to another version" }).getByText("Done").waitFor();
  assert.equal(await counted("ticket", { "states.nodeId": "review" }), 3);
  for (const id of ids) {
    assert.equal((await paulo("GET", `workflow/api/v1/instance/ticket/${id}/pending`)).version, 2);
  }
  await closeWindow(operator);
});

test("all that has failed for one reason is retried at once, also what is on later pages", async () => {
  const many = 120;
  const ids = await create("share", many);
  for (const until = Date.now() + 120_000; (await paulo("GET", "workflow/api/v1/incidents?limit=1000")).incidents.length < many; ) {
    assert.ok(Date.now() < until, "the timers do not come");
    await new Promise((done) => setTimeout(done, 100));
  }
  const correct = (list) => paulo("POST", "workflow/api/v1/events", list.map((instanceId) => ({ workflowId: "share", instanceId, event: { name: "correct", data: { people: 2 } } })));
  await correct(ids.slice(1));
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", "operations");
  const row = page.getByRole("row").filter({ hasText: "division by zero" });
  await row.getByRole("cell", { name: "50+", exact: true }).waitFor();
  await page.getByText("Only the first 50 of each kind are counted here.").waitFor();
  await look(operator, "operations-attention-many");
  let [sent, goOn] = [0, null];
  const seen = new Promise((done) => (goOn = done));
  await page.route("**/workflow/api/v1/incidents/*", async (route) => {
    await (++sent === 61 && seen);
    await route.continue();
  });
  await row.getByRole("button", { name: /^Retry all/ }).click();
  await row.getByText(`60 of ${many}`).waitFor();
  goOn();
  await page.getByText(`${many - 1} were retried.`).waitFor();
  await page.getByText("1 failed again.").waitFor();
  assert.equal(await counted("share", { "states.nodeId": "paid" }), many - 1);
  await row.getByRole("cell", { name: "1", exact: true }).waitFor();
  await correct(ids.slice(0, 1));
  await row.getByRole("button", { name: /^Retry all/ }).click();
  await page.getByText("Nothing is stuck").waitFor();
  await closeWindow(operator);
});

test("an administrator creates a token for somebody, sees its secret once, and a program uses it", async () => {
  await service.caller("olivia.park"); // she has a password now
  const admin = await openWindow(browser, service, { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = admin;
  await signIn(admin, "olivia.park", "operations?section=credentials&kind=tokens");
  const begin = page.getByRole("button", { name: "New token" });
  const dialog = page.getByRole("dialog");
  await begin.click();
  await dialog.getByLabel("User").fill("nobody.at.all");
  await look(admin, "operations-token-new");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByText("No token was created.").waitFor();
  await dialog.getByLabel("User").fill("john.doe");
  await dialog.getByLabel("What it is for").fill("nightly import");
  await dialog.getByLabel("Expires").selectOption({ label: "In 30 days" });
  await dialog.getByLabel("What it is for").press("Enter");
  await page.getByRole("dialog", { name: "Token of john.doe" }).waitFor();
  const box = dialog.getByLabel("Token");
  await hasFocus(box);
  const token = await box.inputValue();
  assert.equal(await page.evaluate(() => getSelection().toString()), token, "it is chosen");
  await look(admin, "operations-token-secret");
  await dialog.getByRole("button", { name: "Copy" }).click();
  await dialog.getByRole("button", { name: "Copied", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), token);
  await dialog.getByRole("button", { name: "I have copied it" }).click();
  await dialog.waitFor({ state: "detached" });
  await hasFocus(begin); // it comes back
  const row = page.getByRole("row").filter({ hasText: "nightly import" });
  await row.getByText("john.doe", { exact: true }).waitFor();
  const end = await row.locator("time").last().getAttribute("datetime");
  assert.equal(Math.round((Date.parse(end) - Date.now()) / 86_400_000), 30);
  assert.equal((await page.content()).includes(token), false, "it is nowhere any more");

  const caller = () => fetch(`${service.root}workflow/api/v1/tasks`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal((await caller()).status, 200);
  await row.getByRole("button", { name: /^Revoke: john\.doe, nightly import/ }).click();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await row.getByText("Ended").waitFor();
  assert.equal((await caller()).status, 401);
  await closeWindow(admin);
});
