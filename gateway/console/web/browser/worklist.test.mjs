// What waits for people, and the page of an instance. The service's answers about
// tasks are given by the test, so that each of them can be had.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { startService } from "./service.mjs";

let browser, service;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const hostile = '<img src=x onerror="window.hit=1"> & Söhne';

/** A worklist of many tasks, and one instance, as a service would have them. */
async function answer(page) {
  const state = { comments: [], asked: [], sent: [] };
  const minutes = (n) => new Date(Date.now() + n * 60_000).toISOString();
  const tasks = Array.from({ length: 120 }, (_, n) => ({
    taskId: `t${n}`, workflowId: n % 3 === 0 ? "leave-request" : "purchase-order", instanceId: `I${n}`, stateMachineId: "main", nodeId: "review",
    title: n === 0 ? hostile : `Purchase ${n}: ${["desk", "laptop", "chair"][n % 3]}`, description: n % 2 ? `${n * 10} EUR` : null, status: "open",
    created: minutes(-n * 90), due: n % 4 ? minutes((n - 6) * 700) : null, priority: n % 7 === 0 ? 80 : 50, assignee: n === 1 ? "mary.major" : n === 2 ? "jane.roe" : null,
    candidates: { roles: ["manager"], users: [] }, requester: "john.doe", requesterName: "John Doe", events: [],
  }));
  const json = (route, value, status = 200) => route.fulfill({ status, contentType: "application/json", body: JSON.stringify(value) });
  await page.route("**/workflow/api/v1/tasks?**", (route) => {
    const asked = new URL(route.request().url()).searchParams;
    state.asked.push(asked);
    const words = (asked.get("q") ?? "").toLowerCase();
    const mine = (task) => task.assignee === "mary.major";
    const scopes = { mine, open: (task) => task.assignee === null, all: (task) => mine(task) || task.assignee !== "nobody", done: () => false };
    const found = tasks.filter((task) => task.title.toLowerCase().includes(words) && scopes[asked.get("scope")](task));
    const from = Number(asked.get("cursor") ?? 0), limit = Number(asked.get("limit"));
    return json(route, { tasks: found.slice(from, from + limit), next: from + limit < found.length ? String(from + limit) : null, count: found.length });
  });
  await page.route("**/workflow/api/v1/tasks/watch", (route) => route.fulfill({ contentType: "text/event-stream", body: ": here\n\n" }));
  await page.route("**/workflow/api/v1/task", (route) => {
    const { taskId, action } = route.request().postDataJSON();
    const task = tasks.find((each) => each.taskId === taskId);
    if (taskId === "t4") {
      return json(route, { error: "Claimed", message: "somebody else has claimed it" }, 409);
    }
    task.assignee = action === "claim" ? "mary.major" : null;
    return json(route, task);
  });
  const instance = "**/workflow/api/v1/instance/*/*";
  await page.route(`${instance}/summary`, (route) => json(route, {
    workflowId: "purchase-order", instanceId: "I5", workflowName: "Purchase order", version: 3, title: `Purchase 5: ${hostile}`,
    status: [{ stateMachineId: "main", nodeId: state.sent.length ? "approved" : "review", label: state.sent.length ? "Approved" : "In review", tone: state.sent.length ? "good" : "waiting" }],
    columns: [{ path: "amount", label: "Amount", value: 1234.5 }, { path: "supplier", label: "Supplier", value: hostile }, { path: "urgent", label: "Urgent", value: true }],
    createdAt: minutes(-3000), updatedAt: minutes(-30 + state.sent.length), requester: "john.doe", requesterName: "John Doe", done: false, ended: false, form: null,
  }));
  await page.route(`${instance}/events`, (route) => json(route, { events: state.sent.length ? [] : [
    { name: "approve", label: "Approve", style: "primary", guard: "true", transitions: [{ stateMachineId: "main", nodeId: "review", targets: ["approved"], guard: "true" }], schema: { type: "object", properties: { comment: { type: "string" } } } },
    { name: "reject", label: "Reject", style: "danger", guard: "true", transitions: [{ stateMachineId: "main", nodeId: "review", targets: ["rejected"], guard: "true" }], schema: null },
  ] }));
  await page.route("**/workflow/api/v1/event", (route) => {
    state.sent.push(route.request().postDataJSON());
    return json(route, { workflowId: "purchase-order", instanceId: "I5", state: { states: [{ stateMachineId: "main", nodeId: "approved" }] } });
  });
  await page.route(`${instance}/pending`, (route) => json(route, { timers: [{ id: "x", event: "after.P2D.review", stateMachineId: "main", nodeId: "review", due: minutes(2000), incident: false }], deliveries: [], children: [], ended: null, version: 3 }));
  await page.route(`${instance}/diagram`, (route) => route.fulfill({ contentType: "image/svg+xml", body: '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 80" onload="window.hit=1"><script>window.hit=1</script><rect x="10" y="20" width="80" height="40" rx="8" fill="#ddf"/><rect x="110" y="20" width="80" height="40" rx="8" fill="#fff" stroke="#88a"/></svg>' }));
  await page.route("**/workflow/api/v1/watch/**", (route) => route.fulfill({ contentType: "text/event-stream", body: ": here\n\n" }));
  await page.route(`${instance}/activity?**`, (route) => json(route, { activity: [
    ...state.comments.map((text) => ({ kind: "comment", ts: minutes(0), user: "mary.major", userName: "Mary Major", text })),
    { kind: "task", ts: minutes(-20), user: "mary.major", userName: "Mary Major", action: "claim" },
    { kind: "history", ts: minutes(-30), user: "john.doe", userName: "John Doe", transitionEvent: "submit", startState: ["draft"], endState: ["review"] },
    { kind: "history", ts: minutes(-3000), user: "john.doe", userName: "John Doe", transitionEvent: "", startState: ["Start"], endState: ["draft"] },
  ], next: null }));
  await page.route(`${instance}/comments`, (route) => {
    const { text } = route.request().postDataJSON();
    state.comments.unshift(text);
    return json(route, { comment: { user: "mary.major", userName: "Mary Major", text, ts: minutes(0) } });
  });
  return state;
}

const sizes = {
  wide: { viewport: { width: 1280, height: 900 } },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
  "phone-dark": { viewport: { width: 320, height: 700 }, hasTouch: true, colorScheme: "dark" },
  german: { locale: "de-DE" },
};

for (const [name, options] of Object.entries(sizes)) {
  test(`a worklist and an instance, ${name}`, async () => {
    const mary = await openWindow(browser, service, options);
    const { page } = mary;
    await answer(page);
    await signIn(mary, "mary.major");
    await page.getByRole("link", { name: "Purchase 1: laptop" }).waitFor();
    assert.match(await page.title(), /^\(120\) /);
    await look(mary, `work-${name}`);
    assert.equal(await isTooWide(page), false, "the worklist scrolls sideways");
    await page.goto(`${service.root}instances/purchase-order/I5`);
    await page.getByText("1,234.5").or(page.getByText("1.234,5")).waitFor();
    await page.getByRole("img").waitFor();
    await look(mary, `instance-${name}`);
    assert.equal(await isTooWide(page), false, "the instance scrolls sideways");
    assert.equal(await page.evaluate(() => window.hit), undefined, "texts of people are text");
    await closeWindow(mary);
  });
}

test("tasks are looked for by the service, and the address keeps how", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  const state = await answer(page);
  await signIn(mary, "mary.major");
  await page.getByRole("link", { name: "Purchase 1: laptop" }).waitFor();
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByRole("link", { name: "Purchase 60: desk" }).waitFor();
  assert.match(page.url(), /cursor=50/);
  await page.goBack();
  await page.getByRole("link", { name: "Purchase 1: laptop" }).waitFor();
  await page.getByRole("button", { name: "Due" }).click();
  await page.getByRole("searchbox").fill("chair");
  await page.getByRole("link", { name: "Purchase 1: laptop" }).waitFor({ state: "detached" });
  assert.ok(state.asked.some((asked) => asked.get("q") === "chair" && asked.get("sort") === "due"));
  await page.reload();
  await page.getByRole("link", { name: "Purchase 2: chair" }).waitFor();
  await page.getByRole("tab", { name: "Decided by you" }).click();
  await page.getByText("Nothing decided yet").waitFor();
  await look(mary, "work-decided");
  await page.goBack();
  await page.getByRole("link", { name: "Purchase 2: chair" }).waitFor();
  assert.equal(await page.getByRole("searchbox").inputValue(), "chair");
  await closeWindow(mary);
});

test("a task is claimed, or somebody else was quicker", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await answer(page);
  await signIn(mary, "mary.major");
  await page.getByRole("button", { name: "Claim: Purchase 5: chair" }).click();
  await page.getByText("“Purchase 5: chair” is assigned to you.").waitFor();
  await page.getByRole("button", { name: "Release: Purchase 5: chair" }).waitFor();
  await page.getByRole("button", { name: "Claim: Purchase 4: laptop" }).click();
  await page.getByText("“Purchase 4: laptop” was claimed by somebody else.").waitFor();
  await closeWindow(mary);
});

test("an instance is decided and talked about with the keyboard alone", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  const state = await answer(page);
  await signIn(mary, "mary.major", "instances/purchase-order/I5");
  const comment = page.getByLabel("Comment");
  await comment.fill("First line\nsecond line");
  await page.reload(); // what was begun is still there
  assert.equal(await comment.inputValue(), "First line\nsecond line");
  await comment.focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("Mary Major commented").waitFor();
  assert.deepEqual(state.comments, ["First line\nsecond line"]);
  await page.getByRole("button", { name: "Approve" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Approve" });
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await page.getByRole("button", { name: "Approve" }).evaluate((element) => element === document.activeElement), true, "the focus comes back");
  await page.keyboard.press("Enter");
  await dialog.getByLabel("Comment").fill("Good\nprice");
  await look(mary, "instance-approve");
  await dialog.getByRole("button", { name: "Approve" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("“Approve” completed.").waitFor();
  assert.equal(state.sent[0].event.data.comment, "Good\nprice");
  await page.getByText("Approved", { exact: true }).waitFor();
  await closeWindow(mary);
});
