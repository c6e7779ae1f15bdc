// Forms that are not submitted yet: made, saved, deleted, and kept through what goes wrong.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, hasFocus, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { addressOf, lose, make, saved } from "./scene.mjs";
import { startService } from "./service.mjs";

let browser, service;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

test("two pages with one form do not overwrite each other in silence", async () => {
  const john = await openWindow(browser, service);
  await signIn(john, "john.doe");
  await make(john, "form", "Leave request");
  await john.page.getByLabel("Reason").fill("first");
  await john.page.getByText(/Saved at/).waitFor();
  const address = await addressOf(john.page);
  const other = await john.context.newPage();
  await other.goto(address);
  await other.getByLabel("Reason").fill("second");
  await other.getByText(/Saved at/).waitFor();
  await john.page.getByLabel("Reason").fill("third");
  await john.page.getByText(/changed in another tab/).waitFor();
  await look(john, "draft-conflict");
  await closeWindow(john);
});

test("a form is made at the first input, and once, also when the answer is lost", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major");
  const created = [];
  page.on("request", (request) => request.url().endsWith("/forms/create") && created.push(request.headers()["idempotency-key"]));
  await page.getByRole("button", { name: "New request" }).first().click();
  const dialog = page.getByRole("dialog");
  await page.route("**/api/v1/template/form/**", () => new Promise(() => {}), { times: 1 }); // mary is quicker than its answer
  await dialog.getByRole("radio", { name: "Leave request" }).check();
  await dialog.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { level: 1, name: "Leave request" }).waitFor();
  await page.getByLabel("Reason").waitFor();
  assert.deepEqual(created, [], "nothing is made before something is typed");
  await page.route("**/forms/create", lose, { times: 1 });
  await page.getByLabel("Reason").pressSequentially("Skiing");
  await page.getByText(/Saved at/).waitFor();
  await addressOf(page);
  await hasFocus(page.getByLabel("Reason")); // the page stays as it was
  assert.ok(created.length >= 2 && new Set(created).size === 1, `${created}`);
  await page.reload();
  assert.equal(await page.getByLabel("Reason").inputValue(), "Skiing");
  await page.goto(`${service.root}?tab=requests`);
  await page.getByRole("link", { name: /Leave request/ }).first().waitFor();
  assert.equal(await page.getByRole("link", { name: /Leave request/ }).count(), 1);
  await closeWindow(mary);
});

test("what is typed into a new form and not saved yet survives a reload", async () => {
  const john = await openWindow(browser, service);
  const { page } = john;
  await signIn(john, "john.doe");
  await make(john, "form", "Leave request");
  await page.route("**/forms/create", (route) => route.abort());
  await page.getByLabel("Reason").fill("In a tunnel");
  await page.getByText(/Not saved/).waitFor();
  page.once("dialog", (dialog) => dialog.accept());
  await page.reload();
  assert.equal(await page.getByLabel("Reason").inputValue(), "In a tunnel");
  await page.unroute("**/forms/create");
  await page.getByText(/Saved at/).waitFor();
  await addressOf(page);
  await closeWindow(john);
});

test("a draft is deleted from its page, and from the list", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major");
  for (const text of ["kept", "deleted on its page", "deleted in the list"]) {
    await make(mary, "form", "Feedback");
    await page.getByLabel("Your message").fill(text);
    await page.getByText(/Saved at/).waitFor();
    if (text === "deleted on its page") {
      await page.getByRole("button", { name: "Delete" }).click();
      await look(mary, "delete-form");
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("“Feedback” was deleted.").waitFor();
    }
  }
  await page.goto(`${service.root}?tab=requests&q=feedback`);
  await page.getByRole("button", { name: "Delete “Feedback”" }).nth(1).waitFor();
  assert.equal(await page.getByRole("button", { name: "Delete “Feedback”" }).count(), 2);
  await look(mary, "requests-current");
  await page.getByRole("button", { name: "Delete “Feedback”" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Delete “Feedback”" }).first().click(); // the newest
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("“Feedback” was deleted.").waitFor();
  await page.getByRole("link", { name: "Feedback" }).nth(1).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Feedback" }).click();
  assert.equal(await page.getByLabel("Your message").inputValue(), "kept");
  await closeWindow(mary);
});

test("a draft whose answer was lost is not somebody else's", async () => {
  const john = await openWindow(browser, service);
  const { page } = john;
  await signIn(john, "john.doe");
  await make(john, "form", "Leave request");
  await page.route("**/api/v1/draft/**", lose, { times: 1 });
  await page.getByLabel("Reason").fill("Skiing ⛷");
  await page.getByText(/Not saved/).waitFor();
  await page.getByText(/Saved at/).waitFor();
  await saved(page, () => page.getByLabel("Reason").fill("Swimming"));
  assert.equal(await page.getByText(/changed in another tab/).count(), 0);
  await closeWindow(john);
});

test("a draft that could not be deleted goes on being saved", async () => {
  const john = await openWindow(browser, service);
  const { page } = john;
  await signIn(john, "john.doe");
  await make(john, "form", "Leave request");
  await page.getByLabel("Reason").fill("first");
  await page.getByText(/Saved at/).waitFor();
  await addressOf(page);
  const busy = { status: 503, contentType: "application/json", body: '{"error":"Busy","message":"the service is busy"}' };
  await page.route("**/api/v1/form/**", (route) => (route.request().method() === "DELETE" ? route.fulfill(busy) : route.fallback()));
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("The service is busy.").waitFor();
  await saved(page, () => page.getByLabel("Reason").fill("second"));
  await page.reload();
  assert.equal(await page.getByLabel("Reason").inputValue(), "second");
  await page.unroute("**/api/v1/form/**");
  const address = page.url();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("“Leave request” was deleted.").waitFor();
  await page.goto(address);
  await page.getByRole("heading", { level: 1, name: "Form not found" }).waitFor();
  await closeWindow(john);
});

test("a template that changes under a draft loses no word of it", async () => {
  const own = await startService();
  try {
    const john = await openWindow(browser, own);
    const { page } = john;
    await signIn(john, "john.doe");
    await make(john, "form", "Feedback");
    await page.getByLabel("What is it about?").selectOption({ label: "Tools" });
    await page.getByLabel("Your message").fill("<b>More</b> of it.");
    await page.getByText(/Saved at/).waitFor();
    const address = await addressOf(page);
    await own.change("forms/feedback.yaml", (text) =>
      text.replace(/oneOf:\n(?: +- .*\n)+/, "enum: [Workplace, Machines]\n").replaceAll("message", "praise").replace("Your praise", "Praise"));
    await page.getByLabel("Your message").fill("<b>More</b> of it, please."); // the page is still the one of before
    await page.getByText(/Saved at/).waitFor();
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByText("This form was changed while you were filling it in.").waitFor();
    await look(john, "template-changed-open");
    await page.getByRole("button", { name: "Continue with the new form" }).click();
    await page.getByText("This form has changed since you started.").waitFor();
    await page.getByText("<b>More</b> of it, please.").waitFor();
    await page.getByText("Tools").first().waitFor();
    await look(john, "template-changed");
    await saved(page, () => page.getByLabel("Praise").fill("All of it"));
    await page.reload(); // the words are kept with the draft
    await page.getByText("<b>More</b> of it, please.").waitFor();
    assert.equal(await page.getByLabel("Praise").inputValue(), "All of it");
    await saved(page, () => page.getByRole("button", { name: "Remove these entries" }).click());
    await page.goto(address);
    assert.equal(await page.getByLabel("Praise").inputValue(), "All of it");
    assert.equal(await page.getByText("This form has changed").count(), 0);
    await page.getByLabel("What is it about?").selectOption({ label: "Machines" });
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByText("Form submitted.").waitFor();
    await closeWindow(john);
  } finally {
    await own.stop();
  }
});
