// An order through three people, on the example home as a newcomer has it: John asks, Mary decides with the form of
// her task, Paulo takes the delivery in. The supplier is a server of this test.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { closeWindow, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { addressOf, make } from "./scene.mjs";
import { startService } from "./service.mjs";

let browser, service, supplier;

before(async () => {
  supplier = createServer((request, answer) => {
    request.resume();
    answer.setHeader("Content-Type", "application/json").end('{"orderNumber": "A-7"}');
  }).listen(0, "127.0.0.1");
  await once(supplier, "listening");
  const endpoint = { url: `http://127.0.0.1:${supplier.address().port}/orders`, secret: "whsec_dGhpcyBpcyBhbiBleGFtcGxlLCBub3QgYSBzZWNyZXQ=" };
  const endpoints = JSON.stringify({ "purchase-order": { supplier: endpoint } });
  [browser, service] = await Promise.all([startBrowser(), startService({ TROUPE_WEBHOOKS_ENDPOINTS: endpoints })]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
  supplier?.close();
});

/** The comment that the form of a task asks for. The activity has another one. */
const commentOf = (page) => page.getByRole("region", { name: /^Approve the order/ }).getByLabel("Comment");

/** What is typed into the comment of a task's form, once the service has it. */
async function commented(page, text) {
  const answered = page.waitForResponse((answer) => answer.request().method() === "PUT" && /\/task\/[^/]+\/draft$/.test(answer.url()));
  await commentOf(page).fill(text);
  assert.equal((await answered).status(), 200);
  await page.getByText(/Saved at/).waitFor();
}

/** An order that a manager is asked about, made without a browser. Returns the id of the instance. */
async function order(total) {
  const john = await service.caller("john.doe");
  const { instanceId } = await john.ask("create", { workflowId: "purchase-order" });
  await john.ask("event", { workflowId: "purchase-order", instanceId, event: { name: "submit", data: { items: [{ name: "desk", quantity: 1, price: total }] } } });
  return instanceId;
}

/** A program pays the supplier of the one order that waits for it. */
async function pay() {
  const headers = { "Content-Type": "application/json", Authorization: `svc.token ${service.token("payment.worker")}` };
  const ask = async (path, body) => {
    const answer = await fetch(`${service.root}workflow/api/v1/jobs/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200);
    return answer.json();
  };
  const { jobs } = await ask("activate", { types: ["pay-supplier"], wait: "PT60S" });
  const [{ jobId, lease }] = jobs;
  const { results } = await ask("complete", { jobs: [{ jobId, lease, output: { receipt: "R-7" } }] });
  assert.deepEqual(results, [{ status: 200 }]);
}

test("an order through three people", async () => {
  const john = await openWindow(browser, service);
  await signIn(john, "john.doe");
  await make(john, "request", "Purchase order");
  await john.page.getByLabel("Item", { exact: true }).fill("Laptop");
  await john.page.getByLabel("Quantity").fill("2");
  await john.page.getByLabel("Unit price").fill("1200");
  await addressOf(john.page);
  await john.page.getByLabel("Unit price").blur();
  assert.equal(await john.page.getByLabel("Unit price").inputValue(), "€1,200.00");
  await john.page.getByText("€2,400.00").waitFor(); // the sum
  await john.page.getByLabel("Unit price").fill("EUR 1200.00");
  await look(john, "order-form");
  await john.page.getByRole("button", { name: "Submit" }).click();
  await john.page.getByText("Form submitted.").waitFor();

  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major");
  const task = page.getByRole("link", { name: "Approve the order by John Doe: €2400.00" });
  await task.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Approve the order by John Doe: €2400.00" }).waitFor();
  await page.getByText("Laptop").first().waitFor();
  await page.getByText("€2,400.00").waitFor(); // the sum
  await commented(page, "The cheaper one, please");
  await look(mary, "order-decision");
  await page.reload();
  await commentOf(page).waitFor();
  assert.equal(await commentOf(page).inputValue(), "The cheaper one, please", "the draft is kept by the service");
  await page.getByRole("button", { name: "Approve" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Done: Approve.").waitFor();
  await page.getByRole("region", { name: "Activity" }).getByText("The cheaper one, please").waitFor();
  await page.waitForURL((url) => !url.searchParams.has("task"));
  await look(mary, "order-approved");
  await closeWindow(mary);

  // John's page is still open, and is told.
  await john.page.getByText("The cheaper one, please").first().waitFor();
  await closeWindow(john);

  const paulo = await openWindow(browser, service);
  await signIn(paulo, "paulo.santos");
  await paulo.page.getByRole("link", { name: "Confirm the delivery" }).click(); // it comes when the supplier has answered
  await paulo.page.getByRole("button", { name: "Confirm the delivery" }).click();
  await paulo.page.getByRole("dialog").getByRole("button", { name: "Confirm the delivery" }).click();
  await paulo.page.getByText("Done: Confirm the delivery.").waitFor();
  await paulo.page.getByText("Being paid", { exact: true }).first().waitFor();
  await pay();
  await paulo.page.getByText("Closed", { exact: true }).first().waitFor();
  await look(paulo, "order-closed");
  await closeWindow(paulo);
});

const sizes = {
  wide: { viewport: { width: 1280, height: 900 } },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
  "phone-dark": { viewport: { width: 320, height: 700 }, hasTouch: true, colorScheme: "dark" },
};

for (const [name, options] of Object.entries(sizes)) {
  test(`the form of a task, ${name}`, async () => {
    const id = await order(2000);
    const mary = await openWindow(browser, service, options);
    const { page } = mary;
    await signIn(mary, "mary.major", `instances/purchase-order/${id}`);
    await page.getByRole("button", { name: "Reject" }).click();
    await page.waitForURL(/\?task=/);
    const heading = page.getByRole("heading", { name: "Approve the order by John Doe: €2000.00" });
    await heading.and(page.locator(":focus")).waitFor(); // the keyboard goes with it
    await page.getByRole("img").waitFor();
    await look(mary, `task-form-${name}`);
    assert.equal(await isTooWide(page), false, "it scrolls sideways");
    await page.goBack();
    await page.getByRole("button", { name: "Reject" }).waitFor();
    await page.waitForURL((url) => !url.searchParams.has("task"));
    await closeWindow(mary);
  });
}

test("what was typed stays when somebody else is quicker", async () => {
  const id = await order(3000);
  const manager = await service.caller("mary.major"); // NB: a new password ends the sessions before it
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major", `instances/purchase-order/${id}`);
  await page.getByRole("button", { name: "Approve" }).click();
  await commented(page, "Too dear");
  await manager.ask("event", { workflowId: "purchase-order", instanceId: id, event: { name: "reject", data: {} } });
  await page.getByText("“Approve the order by John Doe: €3000.00” is no longer open.").waitFor();
  assert.equal(await commentOf(page).inputValue(), "Too dear");
  await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByText("Rejected", { exact: true }).first().waitFor();
  await closeWindow(mary);
});

test("who runs the service gives back what somebody else has", async () => {
  const id = await order(4000);
  const manager = await service.caller("mary.major");
  const { tasks } = await manager.read(`tasks?filter=${encodeURIComponent(JSON.stringify({ instanceId: id }))}`);
  await manager.ask("task", { taskId: tasks[0].taskId, action: "claim" });
  const paulo = await openWindow(browser, service);
  const { page } = paulo;
  await signIn(paulo, "paulo.santos", `instances/purchase-order/${id}`);
  const steps = page.getByRole("region", { name: "Next steps" });
  await steps.getByText("Mary Major").waitFor();
  await steps.getByRole("button", { name: "Assign" }).waitFor();
  await look(paulo, "order-claimed");
  await steps.getByRole("button", { name: "Release" }).click();
  await steps.getByText("Unassigned").waitFor();
  await closeWindow(paulo);
});

test("what cannot be taken back is asked about", async () => {
  const id = await order(5000);
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major", `instances/purchase-order/${id}`);
  await page.getByRole("button", { name: "Reject" }).click();
  await commented(page, "No");
  await page.getByRole("button", { name: "Reject" }).click();
  const dialog = page.getByRole("dialog", { name: "Reject?" });
  await dialog.waitFor();
  await look(mary, "order-reject");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Reject" }).click();
  await dialog.getByRole("button", { name: "Reject" }).click();
  await page.getByText("Done: Reject.").waitFor();
  await closeWindow(mary);
});
