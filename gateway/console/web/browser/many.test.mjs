// Much of everything: 10,000 requests that wait, and words of 10,000 letters.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { closeWindow, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { startService } from "./service.mjs";

let browser, service, john;
const many = 10_000;
const endless = "W".repeat(10_000);

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
  const purchase = readFileSync(new URL("purchase.yaml", import.meta.url), "utf8").replaceAll("maxLength: 200", "maxLength: 20000");
  await service.change("workflows/purchase.yaml", () => purchase);
  john = await service.caller("john.doe");
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

/** What john asks for, as many at once as there are names. Returns the ids of the instances. */
async function requests(items) {
  const created = await john.ask("events", items.map(() => ({ workflowId: "purchase" })));
  const ids = created.results.map((result) => result.instanceId);
  const sent = await john.ask("events", items.map((data, n) => ({ workflowId: "purchase", instanceId: ids[n], event: { name: "submit", data } })));
  assert.ok(sent.results.every((result) => result.status === 200));
  return ids;
}

test("10,000 requests that wait", async () => {
  await requests(Array.from({ length: many }, (_, n) => ({ item: `Thing #${n}`, amount: n })));
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major");
  await page.getByText("10,000 tasks").waitFor();
  assert.equal(await page.getByRole("row").count(), 51, "a page has 50, and a head");
  await look(mary, "many-work");
  await page.getByRole("button", { name: "Next page" }).click();
  await page.waitForURL(/cursor=/);
  await page.goBack();
  await page.getByRole("button", { name: "First page" }).waitFor({ state: "detached" });
  await page.getByRole("searchbox").fill("Thing #9876");
  await page.waitForURL(/q=Thing/);
  await page.getByText("1 result", { exact: true }).waitFor({ state: "attached" }).catch(async (error) => {
    throw new Error(`${error.message}\nat ${page.url()}: ${(await page.locator("body").innerText()).slice(0, 2000)}`);
  });
  await page.getByRole("link", { name: "Purchase: Thing #9876" }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await closeWindow(mary);

  const paulo = await openWindow(browser, service);
  await signIn(paulo, "paulo.santos", "operations?section=instances&workflow=purchase");
  await paulo.page.getByRole("row").nth(20).waitFor();
  assert.ok((await paulo.page.getByRole("row").count()) <= 101, "a page of instances");
  await look(paulo, "many-operations");
  await closeWindow(paulo);
});

test("words of 10,000 letters", async () => {
  const [id] = await requests([{ item: endless, supplier: endless }]);
  await john.ask(`instance/purchase/${id}/comments`, { text: endless });
  const mary = await openWindow(browser, service, { viewport: { width: 320, height: 700 } });
  const { page } = mary;
  await signIn(mary, "mary.major", `instances/purchase/${id}`);
  await page.getByText("John Doe commented").waitFor();
  await page.getByRole("img").waitFor();
  await look(mary, "endless-instance");
  assert.equal(await isTooWide(page), false, "the instance scrolls sideways");
  await page.goto(`${service.root}?sort=-created`);
  await page.getByRole("link", { name: /^Purchase: W/ }).waitFor();
  await page.getByText("More than 10,000 tasks").waitFor();
  await page.waitForFunction(() => document.title.startsWith("(10,000+) "));
  await look(mary, "endless-work");
  assert.equal(await isTooWide(page), false, "the list scrolls sideways");
  await page.setViewportSize({ width: 1280, height: 900 });
  assert.equal(await isTooWide(page), false, "the wide list scrolls sideways");
  await look(mary, "endless-work-wide");
  await closeWindow(mary);
});
