// What waits for people, and the page of an instance: an employee asks, a manager decides.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { closeWindow, hasFocus, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { startService } from "./service.mjs";

let browser, service, john;

const hostile = '<img src=x onerror="window.hit=1"> & Söhne';

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
  await service.change("workflows/purchase.yaml", () => readFileSync(new URL("purchase.yaml", import.meta.url), "utf8"));
  const jane = "  - id: jane.roe\n    name: Jane Roe\n    roles: [manager]\n";
  await service.change("identity.yaml", (text) => text.replace("users:\n", `users:\n${jane}`));
  john = await service.caller("john.doe");
  for (let n = 0; n < 60; n++) {
    await request(`Desk #${String(n).padStart(2, "0")}`);
  }
  const leave = await john.ask("create", { workflowId: "leave-request" });
  await john.ask("event", { workflowId: "leave-request", instanceId: leave.instanceId, event: { name: "submit", data: { days: 5 } } });
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

/** What john asks for, submitted. Returns the id of the instance. */
async function request(item) {
  const { instanceId } = await john.ask("create", { workflowId: "purchase" });
  await john.ask("event", { workflowId: "purchase", instanceId, event: { name: "submit", data: { item, supplier: hostile, amount: 1234.5, urgent: true } } });
  return instanceId;
}

const sizes = {
  wide: { viewport: { width: 1280, height: 900 } },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
  "phone-dark": { viewport: { width: 320, height: 700 }, hasTouch: true, colorScheme: "dark" },
  zoomed: { viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 }, // 1280 at 200 %
  german: { locale: "de-DE" },
};

for (const [name, options] of Object.entries(sizes)) {
  test(`a worklist and an instance, ${name}`, async () => {
    const id = await request(`${name} ${hostile}`);
    const mary = await openWindow(browser, service, options);
    const { page } = mary;
    await signIn(mary, "mary.major");
    await page.getByRole("link", { name: "Purchase: Desk #00" }).waitFor();
    await page.waitForFunction(() => /^\(\d+\) /.test(document.title));
    await look(mary, `work-${name}`);
    assert.equal(await isTooWide(page), false, "the worklist scrolls sideways");
    await page.goto(`${service.root}instances/purchase/${id}`);
    await page.getByText("1,234.5").or(page.getByText("1.234,5")).first().waitFor();
    await page.getByRole("img").waitFor();
    await page.getByText(/John Doe (asked for it|hat angefragt)/).waitFor();
    await look(mary, `instance-${name}`);
    assert.equal(await isTooWide(page), false, "the instance scrolls sideways");
    assert.equal(await page.evaluate(() => window.hit), undefined, "texts of people are text");
    await page.emulateMedia({ media: "print" });
    for (const part of [".top", ".steps", ".comment-form"]) {
      assert.equal(await page.locator(part).isVisible(), false, `${part} is printed`);
    }
    assert.equal(await page.getByText("1,234.5").or(page.getByText("1.234,5")).first().isVisible(), true);
    await closeWindow(mary);
  });
}

test("tasks are looked for by the service, and the address keeps how", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major");
  await page.getByRole("link", { name: "Purchase: Desk #00" }).waitFor();
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByRole("link", { name: "Purchase: Desk #55" }).waitFor();
  await page.waitForURL(/cursor=/);
  await page.goBack();
  await page.getByRole("link", { name: "Purchase: Desk #00" }).waitFor();
  await page.getByRole("searchbox").fill("desk #07");
  await page.getByRole("link", { name: "Purchase: Desk #00" }).waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("link", { name: "Purchase: Desk #07" }).waitFor();
  await page.getByRole("tab", { name: "Decided by you" }).click();
  await page.getByRole("tab", { name: "Decided by you", selected: true }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Purchase: Desk #07" }).waitFor();
  assert.equal(await page.getByRole("searchbox").inputValue(), "desk #07");
  await page.getByRole("button", { name: "Clear" }).or(page.locator(".search .button")).first().click();
  await page.getByRole("link", { name: "Purchase: Desk #00" }).waitFor();
  await page.getByRole("button", { name: /^Filter/ }).click(); // the leave request is not on this page
  await page.getByRole("menuitemcheckbox", { name: "Leave request" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Purchase: Desk #00" }).waitFor({ state: "detached" });
  await page.waitForURL(/workflow=leave-request/);
  await look(mary, "work-filtered");
  await closeWindow(mary);
});

test("a task is claimed, or somebody else was quicker; and the count follows", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await request("Chair to claim");
  await request("Chair of another");
  await signIn(mary, "mary.major", "?q=chair");
  await page.getByRole("button", { name: "Claim: Purchase: Chair to claim" }).click();
  await page.getByText("“Purchase: Chair to claim” is assigned to you.").waitFor();
  await page.getByRole("button", { name: "Release: Purchase: Chair to claim" }).waitFor();
  await page.getByRole("button", { name: "Claim: Purchase: Chair of another" }).waitFor();
  await page.route("**/tasks/watch", (route) => route.abort());
  const jane = await service.caller("jane.roe");
  const { tasks } = await jane.read("tasks?scope=open&q=another");
  await page.route("**/workflow/api/v1/tasks?**", (route) => route.abort()); // mary does not hear of it
  await jane.ask("task", { taskId: tasks[0].taskId, action: "claim" });
  await page.getByRole("button", { name: "Claim: Purchase: Chair of another" }).click();
  await page.getByText("“Purchase: Chair of another” was claimed by someone else.").waitFor();
  await page.unroute("**/workflow/api/v1/tasks?**");
  await page.unroute("**/tasks/watch");
  await page.goto(service.root);
  const count = async () => Number(/^\((\d+)\)/.exec(await page.title())?.[1]);
  await page.waitForFunction(() => /^\(\d+\)/.test(document.title));
  const waiting = await count();
  await request("One more");
  await page.waitForFunction((n) => document.title.startsWith(`(${n}) `), waiting + 1);
  await closeWindow(mary);
});

test("a task is given to somebody who may have it", async () => {
  const id = await request("Lamp to assign");
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major", `instances/purchase/${id}`);
  await page.getByRole("button", { name: "Claim" }).click();
  await page.getByRole("button", { name: "Assign", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Assign the task" });
  await dialog.getByLabel("User").fill("john.doe");
  await dialog.getByRole("button", { name: "Assign" }).click();
  await dialog.getByText("“john.doe” cannot be assigned").waitFor();
  await look(mary, "instance-assign");
  await dialog.getByLabel("User").fill("jane.roe");
  await dialog.getByRole("button", { name: "Assign" }).click();
  await page.getByText("Mary Major assigned the task to Jane Roe").waitFor();
  await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" }); // it is jane's now
  await closeWindow(mary);
});

test("an instance is decided and talked about with the keyboard alone", async () => {
  const id = await request("Laptop to decide");
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major", `instances/purchase/${id}`);
  const comment = page.getByLabel("Comment");
  await comment.fill("First line\n<b>second</b> line");
  await page.reload(); // what was begun is still there
  assert.equal(await comment.inputValue(), "First line\n<b>second</b> line");
  await comment.focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("Mary Major commented").waitFor();
  await page.getByText("<b>second</b> line").waitFor();
  await page.waitForFunction((field) => field.value === "", await comment.elementHandle());
  await page.getByRole("button", { name: "Approve" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Approve" });
  await dialog.getByLabel("Comment").fill("Good\nprice");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await hasFocus(page.getByRole("button", { name: "Approve" })); // it comes back
  await page.keyboard.press("Enter");
  assert.equal(await dialog.getByLabel("Comment").inputValue(), "Good\nprice", "what was typed stays until it is sent");
  await look(mary, "instance-approve");
  await dialog.getByRole("button", { name: "Approve" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Done: Approve.").waitFor();
  await page.getByText("Approved", { exact: true }).first().waitFor();
  await page.getByText("Mary Major approved it").waitFor();
  await look(mary, "instance-decided");
  await page.getByRole("link", { name: /^Next task: / }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.waitForURL((url) => !url.pathname.includes(id));
  await page.goto(`${service.root}?tab=decided`);
  await page.getByRole("link", { name: "Purchase: Laptop to decide" }).waitFor();
  await look(mary, "work-decided");
  await closeWindow(mary);
});

test("a session that ended keeps a comment that was begun", async () => {
  const id = await request("Shelf");
  const mary = await openWindow(browser, service);
  const { page, context } = mary;
  await signIn(mary, "mary.major", `instances/purchase/${id}`);
  await page.getByLabel("Comment").fill("Not lost");
  const cookies = await context.cookies();
  await context.clearCookies();
  await page.getByRole("button", { name: "Add comment" }).click();
  await page.getByText("You are signed out.").first().waitFor();
  assert.equal(await page.getByLabel("Comment").inputValue(), "Not lost");
  await context.addCookies(cookies);
  await page.getByRole("button", { name: "Add comment" }).click();
  await page.getByText("Mary Major commented").waitFor();
  await closeWindow(mary);
});
