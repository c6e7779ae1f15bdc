// The portal as people use it, in a real browser against the real program.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, findings, hasFocus, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { addressOf, lose, make } from "./scene.mjs";
import { startService } from "./service.mjs";

let browser, service;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService({ TROUPE_ARCHIVE_AFTER: "3s" })]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

test("the links that a first start prints", async () => {
  const [johns, , olivias] = await service.links();
  const john = await openWindow(browser, service);
  await john.page.goto(johns);
  await john.page.getByRole("button", { name: "John Doe" }).waitFor();
  assert.equal(john.page.url(), service.root, "the secret is out of the address");
  await john.page.goto(olivias); // another link ends the session of the browser
  await john.page.getByRole("button", { name: "Olivia Park" }).waitFor();
  assert.match(john.page.url(), /\/operations$/);
  const places = async () =>
    Promise.all([".brand", ".top-link >> nth=0", ".top-link >> nth=1", ".top-inside > :last-child"].map(async (part) => (await john.page.locator(part).boundingBox()).x));
  const atOperations = await places();
  await john.page.getByRole("link", { name: "Work", exact: true }).click();
  await john.page.getByRole("heading", { level: 1, name: "Work" }).waitFor();
  assert.deepEqual(await places(), atOperations, "logo and links stay where they are");
  await closeWindow(john);

  const again = await openWindow(browser, service);
  await again.page.goto(johns);
  await again.page.getByText("This link has been used").waitFor();
  await look(again, "login-link-used");
  again.wrong.length = 0; // the browser reports the 401
  await closeWindow(again);
});

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
  await mary.page.getByText("Done: Approve").waitFor();
  await look(mary, "form-approved");
  await closeWindow(mary);

  await john.page.getByText("Approved").first().waitFor(); // told by the stream, without a reload
  await john.page.getByText("Enjoy!").first().waitFor();
  await john.page.goto(service.root + "?tab=requests&show=submitted");
  await john.page.getByRole("button", { name: /Submitted/, pressed: true }).waitFor();
  const until = Date.now() + 120_000;
  do {
    assert.ok(Date.now() < until, "the form is not archived after the retention");
    await john.page.goto(service.root + "?tab=requests&show=archived");
    await john.page.getByRole("button", { name: /Archived/, pressed: true }).waitFor();
    await john.page.getByText(/Loading/).first().waitFor({ state: "detached" });
  } while ((await john.page.getByRole("link", { name: "Leave for John Doe, 5 days" }).count()) === 0);
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

test("phones, darkness, and the keyboard alone", async () => {
  const john = await openWindow(browser, service, { viewport: { width: 320, height: 700 }, colorScheme: "dark", hasTouch: true });
  const { page } = john;
  await page.goto(service.root);
  await page.waitForURL(/\/login\?next=/);
  await page.getByLabel("User").waitFor();
  await look(john, "phone-login");
  await hasFocus(page.getByLabel("User"));
  await page.keyboard.type("john.doe");
  await page.keyboard.press("Tab");
  await page.keyboard.type("an old oak, 1843");
  await page.keyboard.press("Enter");
  await page.waitForURL(service.root);
  await page.getByRole("heading", { level: 1, name: "Work" }).waitFor();
  await look(john, "phone-portal");
  assert.equal(await isTooWide(page), false, "the portal scrolls sideways");
  await press(page, "New");
  await hasFocus(page.getByRole("menuitem", { name: "New request" })); // the first one
  await page.keyboard.press("Enter");
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
