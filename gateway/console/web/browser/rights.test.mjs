// What an administrator changes about people takes effect in pages that are open, in other browsers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, openWindow, signIn, startBrowser } from "./browser.mjs";
import { session } from "./operations.mjs";
import { startService } from "./service.mjs";

const salary = `
id: salary
name: Salaries
version: 1
title: '\${svcPublic.about}'
allow: {create: {roles: [employee]}, read: {roles: [manager]}}
context: {svcPublic: {about: ''}}
stateMachines:
  main:
    states:
      open:
        label: To be reviewed
        task: {title: '\${svcPublic.about}'}
        on: {settle: {target: settled, allow: {roles: [manager]}}}
      settled: {type: final}
`;

let first, second, service, instance, leave;

before(async () => {
  // Two browsers: mary's, who is at work, and that of paulo, who runs the service.
  [first, second, service] = await Promise.all([startBrowser(), startBrowser(), startService()]);
  await service.change("workflows/salary.yaml", () => salary);
  await service.change("identity.yaml", (text) => text.replace("users:\n", "users:\n  - id: jane.roe\n    name: Jane Roe\n    roles: [manager]\n"));
  const john = await session(service, "john.doe");
  const create = async (about) => (await john("POST", "workflow/api/v1/create", { workflowId: "salary", data: { svcPublic: { about } } })).instanceId;
  instance = await create("Salary of Ann");
  const other = await create("Salary of Bob");
  const form = await john("POST", "form-portal/forms/create", { formId: "leave-form", workflowId: "leave-request" });
  await john("POST", "form-runtime/api/v1/submit", { workflowId: "leave-request", instanceId: form, data: { days: 5, reason: "Skiing" } });
  leave = `form-runtime/leave-form/leave-request/${form}/index.html`;
  const paulo = await session(service, "paulo.santos");
  await paulo("POST", "workflow/api/v1/task", { taskId: `${other}-1-0`, action: "assign", to: "jane.roe" });
});
after(async () => {
  await Promise.all([first?.close(), second?.close()]);
  await service?.stop();
});

/** A window at a page that has begun to follow what happens. */
async function follow(browser, user, next = "") {
  const window = await openWindow(browser, service);
  const followed = window.page.waitForResponse((answer) => /\/watch(\/|$)/.test(answer.url()));
  await signIn(window, user, next);
  await followed;
  return window;
}

/** Changes a person, and waits until the pages say so. Prints how long that took once the service had taken it over. */
async function changed(t, what, edit, shown) {
  await service.change("identity.yaml", edit);
  const from = performance.now();
  await Promise.all(shown.map((each) => each()));
  t.diagnostic(`${what}: shown after ${Math.round(performance.now() - from)} ms`);
}

test("names, roles and a disabled account take effect in open pages", async (t) => {
  const desk = await follow(first, "mary.major", `instances/salary/${instance}`);
  await desk.page.getByRole("heading", { name: "Salary of Ann" }).waitFor();
  const list = await follow(first, "mary.major");
  await list.page.getByRole("link", { name: "Salary of Ann" }).waitFor();
  const boss = await follow(second, "paulo.santos", "operations?section=tasks");
  await boss.page.getByText("Jane Roe").waitFor();
  const form = await follow(first, "mary.major", leave);
  await form.page.getByText("Skiing").first().waitFor();
  const menu = ({ page }, name) => page.getByRole("banner").getByText(name, { exact: true });
  const shows = (locator) => () => locator.first().waitFor();
  const lacks = (locator) => () => locator.first().waitFor({ state: "detached" });

  await changed(t, "colleagues have other names", (text) => text.replace("name: John Doe", "name: John Smith").replace("name: Jane Roe", "name: Jane Poe"), [
    shows(list.page.getByRole("cell", { name: "John Smith" })), shows(desk.page.getByText("John Smith")), shows(boss.page.getByText("Jane Poe")),
  ]);
  await changed(t, "people have other names themselves", (text) => text.replace("name: Mary Major", "name: Mary Minor").replace("name: Paulo Santos", "name: Paulo Silva"), [
    shows(menu(list, "Mary Minor")), shows(menu(desk, "Mary Minor")), shows(menu(boss, "Paulo Silva")),
  ]);
  const operations = ({ page }) => page.getByRole("banner").getByRole("link", { name: "Operations" });
  await changed(t, "a privilege is given", (text) => text.replace("roles: [employee, manager]", "roles: [employee, manager]\n    privileges: [mod-workflows]"), [shows(operations(list)), shows(operations(desk))]);
  await changed(t, "a privilege is taken", (text) => text.replace("roles: [employee, manager]\n    privileges: [mod-workflows]", "roles: [employee, manager]"), [lacks(operations(list)), lacks(operations(desk))]);
  await changed(t, "a role is taken", (text) => text.replace("roles: [employee, manager]", "roles: [employee]"), [
    shows(list.page.getByText("You’re all caught up")), lacks(desk.page.getByText("Salary of Ann")), shows(desk.page.getByText("You do not have access to this.")),
    lacks(form.page.getByText("Skiing")), shows(form.page.getByRole("heading", { name: "Form not found" })),
  ]);
  await changed(t, "a role is given", (text) => text.replace("id: mary.major\n    name: Mary Minor\n    email: mary.major@example.org\n    roles: [employee]", "id: mary.major\n    name: Mary Minor\n    email: mary.major@example.org\n    roles: [employee, manager]"), [shows(list.page.getByRole("link", { name: "Salary of Ann" }))]);

  await desk.page.reload();
  await desk.page.getByLabel("Comment").fill("What I was about to say");
  const why = "Your session has ended";
  await changed(t, "an account is disabled", (text) => text.replace("roles: [employee, manager]", "roles: [employee, manager]\n    disabled: true"), [shows(list.page.getByText(why)), shows(desk.page.getByText(why))]);
  await desk.page.getByRole("link", { name: "Sign in again in a new tab" }).waitFor();
  assert.equal(await desk.page.getByLabel("Comment").inputValue(), "What I was about to say", "what was typed stays");
  assert.equal(await boss.page.getByText(why).count(), 0);
  await Promise.all([desk, list, form, boss].map(closeWindow));
});
