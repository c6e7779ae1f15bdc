// What somebody has created through the interface stands among the requests, also for who may not use the portal.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { startService } from "./service.mjs";

const parcel = `
id: parcel
name: Parcel
version: 1
title: 'Parcel to \${svcPublic.to}'
columns: [{path: svcPublic.to, label: {en: Destination, de: Ziel}}]
allow: {create: {roles: [clerk]}, read: {roles: [clerk]}}
context: {svcPublic: {to: ''}}
stateMachines:
  main:
    initial: packing
    states:
      packing: {label: Being packed, on: {send: travelling}}
      travelling: {label: On its way, tone: waiting, on: {arrive: arrived}}
      arrived: {type: final, label: Has arrived, tone: good}
`;

let browser, service;

before(async () => {
  // What is over is archived at once.
  [browser, service] = await Promise.all([startBrowser(), startService({ TROUPE_ARCHIVE_AFTER: "0s" })]);
  await service.change("identity.yaml", (text) =>
    text.replace("roles:\n", "roles:\n  - id: clerk\n    name: Clerk\n").replace("users:\n", "users:\n  - id: jane.roe\n    name: Jane Roe\n    roles: [clerk]\n"));
  await service.change("workflows/parcel.yaml", () => parcel);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

test("an instance that was created through the interface is among the requests, and goes on there by itself", async () => {
  const program = await service.caller("jane.roe");
  const jane = await openWindow(browser, service);
  const { page } = jane;
  await page.clock.install(); // half a minute passes when the test says so
  await signIn(jane, "jane.roe", "?tab=requests");
  const part = (name, count) => page.getByRole("button", { name: `${name} ${count}`, exact: true });
  const row = page.getByRole("link", { name: "Parcel to Oslo" });
  await page.getByText("No current requests").waitFor();
  for (const name of ["Current", "Submitted", "Archived"]) {
    await part(name, 0).waitFor();
  }
  assert.equal(await page.getByRole("button", { name: /^New/ }).count(), 0, "jane makes no forms");
  await look(jane, "requests-none");
  await page.evaluate(() => (window.isSame = true));

  const { instanceId } = await program.ask("create", { workflowId: "parcel", data: { svcPublic: { to: "Oslo" } } });
  const send = (name) => program.ask("event", { workflowId: "parcel", instanceId, event: { name } });
  await page.clock.fastForward(31_000);
  await row.waitFor();
  await part("Current", 1).waitFor();
  await page.getByRole("cell", { name: "Being packed" }).waitFor();
  await page.getByRole("cell", { name: "Oslo", exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: /^Delete/ }).count(), 0, "it is no draft");
  await look(jane, "requests-instance");
  assert.equal(await isTooWide(page), false);

  await row.click();
  await page.getByRole("heading", { level: 1, name: "Parcel to Oslo" }).waitFor();
  assert.equal(page.url(), `${service.root}instances/parcel/${instanceId}`);
  await send("send");
  await page.getByText("On its way").first().waitFor(); // told by its stream
  await page.goBack();
  await page.getByText("No current requests").waitFor();
  await part("Submitted", 1).click();
  await page.getByRole("cell", { name: "On its way" }).waitFor();

  await send("arrive");
  await page.clock.fastForward(31_000);
  await page.getByText("No submitted requests").waitFor();
  await part("Archived", 1).click();
  await page.getByRole("cell", { name: "Has arrived" }).waitFor();
  assert.equal(await page.evaluate(() => window.isSame), true, "nothing was loaded anew");
  await closeWindow(jane);
});
