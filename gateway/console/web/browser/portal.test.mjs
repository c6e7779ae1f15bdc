// The portal as people use it, in a real browser against the real program.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, findings, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { startService } from "./service.mjs";

let browser, service;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService({ TROUPE_ARCHIVE_AFTER: "3s" })]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

/** Opens the page of a new form or checklist. It is made when something is typed into it. */
async function make(window, kind, name) {
  const { page } = window;
  await page.goto(window.service.root);
  const words = kind === "checklist" ? "New checklist" : "New request";
  await page.getByRole("button", { name: /^New/ }).first().click();
  await page.getByRole("menuitem", { name: words }).or(page.getByRole("dialog")).waitFor();
  if ((await page.getByRole("dialog").count()) === 0 || (await page.getByRole("menuitem", { name: words }).count()) > 0) {
    await page.getByRole("menuitem", { name: words }).click(); // who can make both has a menu
  }
  await page.getByRole("dialog").getByRole("radio", { name }).check();
  await look(window, `new-${kind}`);
  await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  assert.match(page.url(), kind === "checklist" ? /\/new-checklist\/index\.html$/ : /\/new\/index\.html$/);
}

/** The address of a form that was made while its page was open. */
async function addressOf(page) {
  await page.waitForURL(/\/[0-9A-Z]{26}\/index\.html$/);
  return page.url();
}

/** Changes something and waits until the draft is saved. NB: "Saving…" may pass unseen. */
async function saved(page, change) {
  const answered = page.waitForResponse((answer) => answer.request().method() === "PUT" && answer.url().includes("/api/v1/draft/"));
  await change();
  assert.equal((await answered).status(), 200);
  await page.getByText(/Saved at/).waitFor();
}

/** Lets the service carry out a request, and loses the answer. */
async function lose(route) {
  await route.fetch();
  await route.abort();
}

test("a leave request, from signing in to the archive", async () => {
  const john = await openWindow(browser, service);
  await john.page.goto(service.root);
  await john.page.waitForURL(/\/login\?next=/);
  await look(john, "login");
  await signIn(john, "john.doe");
  await john.page.getByRole("heading", { level: 1, name: "Work" }).waitFor();
  await look(john, "portal-empty");

  await make(john, "form", "Leave request");
  await look(john, "form-new");
  await john.page.getByRole("button", { name: "Submit", exact: true }).click();
  await john.page.getByText("needs a correction").waitFor();
  await look(john, "form-faults");
  await john.page.getByLabel("Days off").fill("5");
  await john.page.getByLabel("Reason").fill("Skiing\nwith the family");
  await john.page.getByText(/Saved at/).waitFor();
  const address = await addressOf(john.page);
  assert.match(address, /\/form-runtime\/leave-form\/leave-request\/[0-9A-Z]{26}\/index\.html$/);
  await look(john, "form-draft");
  await john.page.reload();
  await john.page.getByLabel("Days off").waitFor();
  assert.equal(await john.page.getByLabel("Days off").inputValue(), "5");
  assert.equal(await john.page.getByLabel("Reason").inputValue(), "Skiing\nwith the family");
  await john.page.getByRole("button", { name: "Submit", exact: true }).click();
  await john.page.getByText("Form submitted.").waitFor();
  await john.page.getByText("Waiting for a manager").first().waitFor();
  assert.equal(await john.page.getByRole("button", { name: "Approve" }).count(), 0, "john may not approve it himself");
  await look(john, "form-submitted");

  const mary = await openWindow(browser, service);
  await signIn(mary, "mary.major", address.slice(service.root.length));
  await mary.page.getByRole("button", { name: "Approve" }).click();
  await mary.page.getByRole("dialog").getByLabel("Comment").fill("Enjoy!");
  await look(mary, "approve");
  await mary.page.route("**/api/v1/event", lose, { times: 1 });
  await mary.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await mary.page.getByText("The service cannot be reached. Check your connection and try again.").waitFor();
  await mary.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click(); // the first one has arrived
  await mary.page.getByText("“Approve” completed").waitFor();
  await look(mary, "form-approved");
  await closeWindow(mary);

  await john.page.getByText("Approved").first().waitFor(); // told by the stream, without a reload
  await john.page.getByText("Enjoy!").waitFor();
  await john.page.goto(service.root + "?tab=requests&show=submitted");
  await john.page.getByRole("button", { name: /Submitted/, pressed: true }).waitFor();
  const until = Date.now() + 20_000;
  do {
    assert.ok(Date.now() < until, "the form is not archived after the retention");
    await john.page.goto(service.root + "?tab=requests&show=archived");
    await john.page.getByRole("button", { name: /Archived/, pressed: true }).waitFor();
    await john.page.getByText(/Loading/).first().waitFor({ state: "detached" });
  } while ((await john.page.getByRole("link", { name: /Leave request/ }).count()) === 0);
  await look(john, "portal-archived");

  await john.page.getByRole("button", { name: /John Doe/ }).click();
  await look(john, "user-menu");
  await john.page.getByRole("menuitem", { name: "Sign out" }).click();
  await john.page.waitForURL(/\/login/);
  await john.page.goto(address);
  await john.page.waitForURL(/\/login\?next=/);
  await closeWindow(john);
});

test("a checklist and a form without a workflow", async () => {
  const john = await openWindow(browser, service);
  await signIn(john, "john.doe");
  await make(john, "checklist", "Workplace safety");
  for (const item of ["Escape routes are clear", "No cable lies across a path"]) {
    await john.page.getByRole("checkbox", { name: item }).check();
  }
  await john.page.getByRole("button", { name: "Submit", exact: true }).click();
  await john.page.getByText("need a correction").waitFor();
  await look(john, "checklist-faults");
  for (const item of ["Fire extinguishers are in place", "The first-aid box is complete"]) {
    await john.page.getByRole("checkbox", { name: item }).check();
  }
  await john.page.getByRole("button", { name: "Submit", exact: true }).click();
  await john.page.getByText("Form submitted.").waitFor();
  await look(john, "checklist-submitted");

  await make(john, "form", "Feedback");
  await john.page.getByLabel("What is it about?").selectOption({ label: "Tools" });
  await john.page.getByLabel("Your message").fill("More of it.");
  await john.page.getByText(/Saved at/).waitFor();
  const address = await addressOf(john.page);
  assert.match(address, /\/feedback\/-\//);
  await look(john, "plain-form");
  await john.page.getByRole("button", { name: "Submit", exact: true }).click();
  await john.page.getByText("Form submitted.").waitFor();

  const mary = await openWindow(browser, service); // nobody else sees it
  await signIn(mary, "mary.major", address.slice(service.root.length));
  await mary.page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await mary.page.getByText("More of it.").count(), 0);
  await look(mary, "form-of-another");
  await closeWindow(mary);
  await closeWindow(john);
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
  assert.ok(await page.getByLabel("Reason").evaluate((field) => field === document.activeElement), "the page stays as it was");
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
      text.replace("[Workplace, Tools, Working together, Something else]", "[Workplace, Machines]").replaceAll("message", "praise").replace("Your praise", "Praise"));
    await page.getByLabel("Your message").fill("<b>More</b> of it, please."); // the page is still the one of before
    await page.getByText(/Saved at/).waitFor();
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByText("This form was changed while you were filling it in.").waitFor();
    await look(john, "template-changed-open");
    await page.getByRole("button", { name: "Continue with the new form" }).click();
    await page.getByText("This form has changed since you began.").waitFor();
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

test("phones, darkness, and the keyboard alone", async () => {
  const john = await openWindow(browser, service, { viewport: { width: 320, height: 700 }, colorScheme: "dark", hasTouch: true });
  const { page } = john;
  await page.goto(service.root);
  await page.waitForURL(/\/login\?next=/);
  await page.getByLabel("User").waitFor();
  await look(john, "phone-login");
  await page.keyboard.type("john.doe"); // the field has the focus
  await page.keyboard.press("Tab");
  await page.keyboard.type("an old oak, 1843");
  await page.keyboard.press("Enter");
  await page.waitForURL(service.root);
  await page.getByRole("heading", { level: 1, name: "Work" }).waitFor();
  await look(john, "phone-portal");
  assert.equal(await isTooWide(page), false, "the portal scrolls sideways");
  await press(page, "New");
  await page.getByRole("menuitem", { name: "New request" }).waitFor();
  await page.keyboard.press("Enter"); // the first one has the focus
  await page.getByRole("dialog").waitFor();
  await page.getByRole("dialog").getByRole("radio", { name: "Leave request" }).focus();
  await page.keyboard.press("Space");
  await press(page, "Continue");
  await page.getByRole("heading", { level: 1, name: "Leave request" }).waitFor();
  await look(john, "phone-form");
  assert.equal(await isTooWide(page), false, "the form scrolls sideways");
  await page.getByLabel("Days off").focus();
  await page.keyboard.type("1");
  await press(page, "Submit");
  await page.getByText("Form submitted.").waitFor();
  await look(john, "phone-submitted");
  await closeWindow(john);
});

/** Reaches a button by Tab and presses it. */
async function press(page, name) {
  const button = page.getByRole("button", { name, exact: true }).first();
  await button.waitFor();
  for (let n = 0; n < 60; n++) {
    if (await button.evaluate((element) => element === document.activeElement)) {
      await page.keyboard.press("Enter");
      return;
    }
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab does not reach ${name}`);
}

test("a service below a base path", async () => {
  const below = await startService({ TROUPE_BASE_PATH: "/platform" });
  try {
    const john = await openWindow(browser, below);
    await signIn(john, "john.doe");
    await make(john, "checklist", "Workplace safety");
    await john.page.getByRole("checkbox").first().check();
    await john.page.getByText(/Saved at/).waitFor();
    const address = await addressOf(john.page);
    assert.ok(address.startsWith(below.root), address);
    await closeWindow(john);
  } finally {
    await below.stop();
  }
});

test("controls: what these tests rely on would be noticed", async () => {
  const window = await openWindow(browser, service);
  await signIn(window, "john.doe");
  const { page, wrong } = window;
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.evaluate(() => document.querySelector("main").append(document.createElement("input")));
  assert.match((await findings(page)).join(), /label/, "axe finds a field without a label");
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.ran), undefined, "the policy stops a script in the page");
  await page.evaluate(() => fetch("http://127.0.0.1:9/").catch(() => {}));
  assert.ok(wrong.some((line) => /Content Security Policy|violates/.test(line)), `a request to elsewhere is noticed: ${wrong}`);
  await window.context.close();
});
