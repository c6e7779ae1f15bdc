// Whoever runs the service gives tasks to others without reading them, and ends what goes on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, hasFocus, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { session } from "./operations.mjs";
import { startService } from "./service.mjs";

let browser, service, john, paulo;
const tasks = 55;
const secret = "Salary of somebody";

/** Only managers read it, and paulo, who runs the service, is none. */
const salary = `
id: salary
name: Salaries
version: 1
title: '\${svcPublic.about}'
allow: {create: {roles: [employee]}, read: {roles: [manager]}}
context: {svcPublic: {about: '', urgent: false}}
events: {settle: {label: Settle}}
stateMachines:
  main:
    states:
      open:
        label: {en: To be reviewed, de: Zu prüfen}
        task: {title: '\${svcPublic.about}', due: P3D}
        on: {settle: {target: settled, allow: {roles: [manager]}}}
      settled: {type: final}
`;
const job = `
id: job
name: Job
version: 1
stateMachines: {main: {states: {working: {on: {finish: finished}}, finished: {type: final}}}}
`;
const batch = `
id: batch
name: Batch
version: 1
stateMachines:
  main:
    states:
      both: {type: parallel, onDone: {target: done}, states: {one: {initial: a, states: {a: {invoke: {workflow: job, onDone: ready-one}}, ready-one: {type: final}}}, two: {initial: b, states: {b: {invoke: {workflow: job, onDone: ready-two}}, ready-two: {type: final}}}}}
      done: {type: final}
`;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
  [john, paulo] = await Promise.all(["john.doe", "paulo.santos"].map((user) => session(service, user)));
  for (const [id, text] of Object.entries({ salary, job, batch })) {
    await paulo("PUT", `workflow/api/v1/definitions/${id}/1`, text, "application/yaml");
  }
  for (let n = 0; n < tasks; n++) {
    await john("POST", "workflow/api/v1/create", { workflowId: "salary", data: { svcPublic: { about: secret } } });
  }
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

test("every task is listed without what is in it, and given to somebody who may have it", async () => {
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", "operations?section=tasks");
  await page.getByRole("heading", { name: "Tasks" }).waitFor();
  await page.getByText(`${tasks} tasks`).waitFor();
  const rows = page.getByRole("table", { name: "Tasks" }).getByRole("row");
  assert.equal(await rows.count(), 51, "a page, and the head");
  const first = rows.nth(1);
  for (const text of ["To be reviewed", "Salaries", /in [23] days/, "Manager", "Nobody"]) { // two, when midnight has passed
    await first.getByText(text).waitFor();
  }
  assert.equal((await page.locator("body").textContent()).includes(secret), false, "what is in it is not shown");
  await look(operator, "operations-tasks-wide");

  // The service sorts and pages.
  await page.getByRole("button", { name: "Next page" }).click();
  await page.waitForURL(/cursor=/);
  await page.waitForFunction((n) => document.querySelectorAll("tbody tr").length === n, tasks - 50);
  await page.getByRole("button", { name: "Since" }).click();
  await page.waitForURL((url) => url.searchParams.get("sort") === "created" && !url.searchParams.has("cursor"));
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 50);

  // One that is not asked for by name, given to who may have it.
  const id = (await first.locator(".row-id").getAttribute("title")) ?? "";
  const row = page.getByRole("row").filter({ has: page.locator(`.row-id[title="${id}"]`) });
  await row.getByRole("button", { name: /^Assign: / }).click();
  const dialog = page.getByRole("dialog", { name: "Assign the task" });
  await dialog.getByLabel("User").fill("john.doe");
  await dialog.getByRole("button", { name: "Assign" }).click();
  await dialog.getByText("“john.doe” cannot be assigned").waitFor();
  assert.equal(await dialog.getByLabel("User").inputValue(), "john.doe", "what was typed stays");
  await dialog.getByLabel("User").fill("mary.major");
  await dialog.getByRole("button", { name: "Assign" }).click();
  await page.getByText(/^“To be reviewed, ….{6}” is assigned to mary\.major\.$/).waitFor();
  await hasFocus(page.locator(".page-news .notice"));
  await row.getByText("Mary Major").waitFor();

  // And looked for.
  await page.getByRole("button", { name: "Add condition" }).click();
  await page.getByLabel("Field of condition 1").selectOption({ label: "Assigned to" });
  await page.getByLabel("Value of condition 1").fill("mary.major");
  await page.keyboard.press("Enter");
  await page.getByText("1 task", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.getByRole("searchbox").fill(id.toLowerCase());
  await page.getByText("1 task", { exact: true }).waitFor();
  await row.getByRole("button", { name: /^Release: / }).click();
  await page.getByText(/is open again\.$/).waitFor();
  await row.getByText("Nobody").waitFor();
  await page.getByLabel("Workflow").selectOption({ label: "Leave request" });
  await page.getByText("No matching tasks").waitFor();
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.getByText(`${tasks} tasks`).waitFor();
  await closeWindow(operator);
});

test("every task in German on a phone", async () => {
  const operator = await openWindow(browser, service, { locale: "de-DE", viewport: { width: 320, height: 700 }, hasTouch: true });
  const { page } = operator;
  await signIn(operator, "paulo.santos", "operations?section=tasks");
  await page.getByText(`${tasks} Aufgaben`).waitFor();
  await page.getByText("Zu prüfen").first().waitFor();
  await page.getByText("Für").first().waitFor(); // what the heads of columns say elsewhere
  assert.equal(await isTooWide(page), false, "it scrolls sideways");
  await look(operator, "operations-tasks-german-small");

  // The numbers of a German picture are numbers, too.
  await page.goto(`${service.root}operations?section=workflows&workflow=salary`);
  await page.getByRole("row").filter({ hasText: new RegExp(`Zu prüfen.*${tasks}$`) }).waitFor();
  await closeWindow(operator);
});

test("a tree is stopped where it begins, after a question that says what ends", async () => {
  const { instanceId: root } = await paulo("POST", "workflow/api/v1/create", { workflowId: "batch" });
  const pending = (workflow, id) => paulo("GET", `workflow/api/v1/instance/${workflow}/${id}/pending`);
  let children = [];
  for (const until = Date.now() + 120_000; children.filter(({ status, instanceId }) => status === "running" && instanceId).length < 2; ) {
    assert.ok(Date.now() < until, "the children do not come");
    ({ children } = await pending("batch", root));
  }
  const operator = await openWindow(browser, service);
  const { page } = operator;
  const stop = page.getByRole("button", { name: "Stop tree" });
  await signIn(operator, "paulo.santos", `operations?section=instances&workflow=job&instance=${children[0].instanceId}`);
  await page.getByText("No running timers.").waitFor();
  assert.equal(await stop.count(), 0, "where nothing runs below there is no tree");

  const inspect = `operations?section=instances&workflow=batch&instance=${root}`;
  const german = await openWindow(browser, service, { locale: "de-DE" });
  await german.page.route("**/workflow/api/v1/incidents?**", (route) =>
    route.fulfill({ contentType: "application/json", body: JSON.stringify({ next: null, incidents: [{ id: `${root}-9-0`, workflowId: "batch", instanceId: root, event: "go", error: "it goes on", kind: "loop", ts: new Date().toISOString() }] }) }));
  await signIn(german, "paulo.santos", inspect);
  await german.page.getByRole("region", { name: "Kind-Instanzen" }).getByText("Läuft").nth(1).waitFor();
  await german.page.getByRole("region", { name: "Störungen" }).getByText("Endlosschleife").waitFor(); // it is no timer
  await look(german, "operations-inspect-german");
  await closeWindow(german);

  await page.goto(service.root + inspect);
  await stop.click();
  const dialog = page.getByRole("dialog", { name: "Stop “Batch” and all its child instances?" });
  await dialog.getByText("This cancels “Batch”, 2 running child instances (2 × Job) and everything below them").waitFor();
  await look(operator, "operations-stop-tree");
  await dialog.getByRole("button", { name: "Keep running" }).click();
  await dialog.waitFor({ state: "detached" });
  await hasFocus(stop); // it comes back
  assert.equal((await pending("batch", root)).ended, null);
  await stop.click();
  await dialog.getByRole("button", { name: "Stop all" }).click();
  await page.getByText("“Batch” was stopped.").waitFor();
  await stop.waitFor({ state: "detached" });
  assert.equal((await pending("batch", root)).ended, "cancelled");
  for (const { instanceId } of children) {
    for (const until = Date.now() + 120_000; (await pending("job", instanceId)).ended !== "cancelled"; ) {
      assert.ok(Date.now() < until, "a child goes on");
    }
  }

  // Lists and its own page say so as well.
  await page.goto(`${service.root}operations?section=instances&workflow=batch`);
  await page.getByRole("row").filter({ hasText: root.slice(-6) }).getByText("Canceled").waitFor();
  await page.goto(`${service.root}instances/batch/${root}`);
  await page.locator(".form-facts").getByText("Canceled").waitFor();
  await page.getByRole("region", { name: "Activity" }).getByText("Paulo Santos canceled the request").waitFor();
  await look(operator, "instance-cancelled");
  await closeWindow(operator);
});

test("who may not read a tree stops it all the same", async () => {
  const { instanceId } = await john("POST", "workflow/api/v1/create", { workflowId: "salary" });
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", `operations?section=instances&workflow=salary&instance=${instanceId}`);
  await page.getByText("You don’t have read access to this instance.").waitFor();
  await page.getByRole("button", { name: "Stop tree" }).click();
  await page.getByRole("dialog").getByText("This cancels “Salaries” and all its direct and indirect child instances").waitFor();
  await page.getByRole("button", { name: "Stop all" }).click();
  await page.getByText("“Salaries” was stopped.").waitFor();
  await closeWindow(operator);
});

test("one thing is done to many instances, after a look at how many they are", async () => {
  await paulo("PUT", "workflow/api/v1/definitions/chore/1", job.replace("id: job", "id: chore").replace("name: Job", "name: Chore"), "application/yaml");
  for (let n = 0; n < 3; n++) {
    await paulo("POST", "workflow/api/v1/create", { workflowId: "chore" });
  }
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", "operations?section=bulk");
  await page.getByText("No bulk jobs yet").waitFor();
  await page.getByRole("button", { name: "New bulk job" }).click();
  const form = page.getByRole("region", { name: "New bulk job" });
  await form.getByLabel("Workflow").selectOption({ label: "Chore" });
  await form.getByRole("button", { name: "Add condition" }).click();
  await form.getByRole("button", { name: "Apply" }).click();
  const run = async (event) => {
    await form.getByLabel("Event", { exact: true }).fill(event);
    await form.getByText(/^(3|many) instances match now\.$/).waitFor(); // many: counting took long
    await form.getByRole("button", { name: "Start" }).click();
    await page.getByRole("dialog", { name: `Send “${event}”?` }).getByRole("button", { name: "Start" }).click();
    await page.getByText(`“Send “${event}”” was started.`).waitFor();
  };
  await look(operator, "operations-bulk-new");
  await form.getByLabel("Event", { exact: true }).fill("unknown");
  await form.getByText(/no version of chore has the event/).waitFor();
  const row = (event) => page.getByRole("row").filter({ hasText: `Send “${event}”` });

  // From a list, with its conditions.
  await page.goto(`${service.root}operations?section=instances&workflow=chore&filter=${encodeURIComponent('{"states.nodeId":"working"}')}`);
  await page.getByRole("link", { name: "Change all…" }).click();
  await run("finish");
  await row("finish").getByText("Done").waitFor();
  await look(operator, "operations-bulk");
  const { count } = await paulo("GET", `workflow/api/v1/instances/chore?count=true&filter=${encodeURIComponent('{"states.nodeId":"working"}')}`);
  assert.equal(count, 0);
  await closeWindow(operator);
});

test("an administrator sees who may do what and why, ends a session, and finds it in the audit log", async () => {
  await service.caller("olivia.park"); // she has a password now
  const { instanceId } = await john("POST", "workflow/api/v1/create", { workflowId: "salary" });
  const mary = await session(service, "mary.major");
  await mary("GET", "session");
  const admin = await openWindow(browser, service);
  const { page } = admin;
  await signIn(admin, "olivia.park", "operations?section=users");
  await page.getByRole("link", { name: "Paulo Santos" }).click();
  await page.getByText("role Employee, role Purchasing").first().waitFor();
  for (const [label, text] of [["Workflow (ID)", "salary"], ["Instance (ID)", instanceId], ["Event", "settle"]]) {
    await page.getByLabel(label).fill(text);
  }
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("No, Paulo Santos may not.").waitFor();
  await page.getByText(/^allow\.read: no/).waitFor();
  await look(admin, "operations-user");

  await page.goto(`${service.root}operations?section=credentials&user=mary.major`);
  await page.getByRole("button", { name: /^End session: mary\.major/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End session" }).click();
  await page.getByText(/^The session of mary\.major, .* has ended\.$/).waitFor();
  await page.getByRole("row").filter({ hasText: "mary.major" }).getByText("Ended").waitFor();
  await assert.rejects(mary("GET", "session"), /401/);

  await page.goto(`${service.root}operations?section=audit`);
  await page.getByRole("searchbox", { name: "Who" }).fill("olivia.park");
  await page.waitForURL(/actor=olivia\.park/);
  await page.getByRole("row").filter({ hasText: "session.revoke" }).first().waitFor();
  await page.getByRole("button", { name: "Verify" }).click();
  await page.getByText(/^The log is intact: \d+ rows\.$/).waitFor();
  await page.getByRole("searchbox", { name: "Action" }).fill("session.revok");
  await page.getByText(/session\.revoke/).waitFor(); // the service says what may be meant

  for (const [section, shown] of Object.entries({ users: "Mary Major", "users&kind=roles": "Purchasing", credentials: "Valid", audit: "signin", backups: "This server makes no backups", exports: "No exports" })) {
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.goto(`${service.root}operations?section=${section}`);
    await page.getByText(shown).first().waitFor();
    await look(admin, `operations-${section.replace("&kind=", "-")}-wide`);
    await page.setViewportSize({ width: 320, height: 700 });
    await look(admin, `operations-${section.replace("&kind=", "-")}-small`);
    assert.equal(await isTooWide(page), false, `${section} scrolls sideways`);
  }
  await closeWindow(admin);
});
