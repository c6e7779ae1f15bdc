// The pages for readers of another language, with a slow line, without one, and with
// the keyboard alone.
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

/** A form that john begins, on its page. */
async function begin(window, words = ["New", "New request", "Leave request", "Continue"]) {
  const { page } = window;
  const [button, item, template, create] = words;
  await page.getByRole("button", { name: button, exact: true }).click();
  await page.getByRole("menuitem", { name: item }).click();
  await page.getByRole("dialog").getByRole("radio", { name: template }).check();
  await page.getByRole("dialog").getByRole("button", { name: create }).click();
  await page.getByRole("heading", { level: 1, name: template }).waitFor();
}

test("German, from the browser's wish, and English from the menu", async () => {
  const john = await openWindow(browser, service, { locale: "de-DE" });
  const { page } = john;
  await signIn(john, "john.doe");
  await page.getByRole("heading", { level: 1, name: "Arbeit" }).waitFor();
  assert.equal(await page.getAttribute("html", "lang"), "de");
  await begin(john, ["Neu", "Neuer Antrag", "Urlaubsantrag", "Weiter"]);
  await page.getByRole("button", { name: "Einreichen" }).click();
  await page.getByText("Dieses Feld ist erforderlich.").first().waitFor();
  await look(john, "german-form");
  await page.getByText("Arbeitstage, von 1 bis 60.").waitFor();
  await page.getByLabel("Urlaubstage").fill("3");
  await page.getByText(/Gespeichert um/).waitFor();
  await page.getByRole("button", { name: /John Doe/ }).click();
  await page.getByRole("menuitemradio", { name: "English" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Submit" }).waitFor();
  await page.getByRole("heading", { level: 1, name: "Leave request" }).waitFor(); // the form is asked for again
  assert.equal(await page.getByLabel("Days off").inputValue(), "3", "what was typed stays");
  await page.reload();
  await page.getByRole("button", { name: "Submit" }).waitFor(); // the choice is kept
  await closeWindow(john);
});

test("a list is what its address says, also after Back", async () => {
  const mary = await openWindow(browser, service);
  const { page } = mary;
  await signIn(mary, "mary.major");
  for (const name of ["Leave request", "Feedback"]) {
    await page.goto(service.root);
    await page.getByRole("button", { name: "New request" }).first().click();
    await page.getByRole("dialog").getByRole("radio", { name }).check();
    await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
    await page.getByRole("textbox").last().fill("Something");
    await page.getByText(/Saved at/).waitFor();
  }
  await page.goto(`${service.root}?tab=requests`);
  await page.getByRole("searchbox").fill("leave");
  await page.getByRole("link", { name: "Feedback" }).waitFor({ state: "detached" });
  await page.waitForURL(/[?&]q=leave/);
  await page.getByRole("link", { name: "Leave request" }).click();
  await page.getByRole("heading", { level: 1, name: "Leave request" }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Leave request" }).waitFor();
  assert.equal(await page.getByRole("searchbox").inputValue(), "leave");
  await page.getByRole("searchbox").fill("nothing of the kind");
  await page.getByText("No results").waitFor();
  await look(mary, "list-no-results");
  await page.getByRole("button", { name: "Clear search and filter" }).click();
  await page.getByRole("button", { name: /^Filter/ }).click();
  await page.getByRole("menuitemcheckbox", { name: "Without a workflow" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Leave request" }).waitFor({ state: "detached" });
  await look(mary, "list-filtered");
  await page.reload();
  await page.getByRole("link", { name: "Feedback" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Leave request" }).count(), 0);
  await closeWindow(mary);
});

test("requests are shown as their definition says, and hostile words are words", async () => {
  const hostile = '<img src=x onerror="window.hit=1"> & Söhne';
  const john = await openWindow(browser, service);
  const { page } = john;
  const form = (n, workflow) => ({
    id: `01M8C76F1RE9GBQH1WD23MPYA${n}`, formType: "WorkflowForm", formId: "f", submissionId: n === 2 ? "" : "S", name: "Purchase", fullPath: `form-runtime/f/${workflow}/${n}/index.html`, by: "john.doe", when: Date.now() - n * 1e8, status: "review", role: "employee",
    workflowId: workflow, title: `${n} ${hostile}`, states: [{ stateMachineId: "main", nodeId: "review", label: `In review ${hostile}`, tone: "waiting" }], columns: [{ path: "amount", label: "Amount", value: 1234.5 }, { path: "supplier", label: "Supplier", value: hostile }],
  });
  let forms = [form(1, "purchase"), form(2, "purchase")];
  await page.route("**/workflow/api/v1/requests?**", (route) => {
    const query = new URL(route.request().url()).searchParams;
    return route.fulfill({ contentType: "application/json", body: JSON.stringify({ forms, next: query.has("cursor") ? null : "second", count: 120 }) });
  });
  await signIn(john, "john.doe", "?tab=requests");
  await page.getByRole("columnheader", { name: "Amount" }).waitFor();
  await page.getByRole("cell", { name: "1,234.5" }).first().waitFor();
  await look(john, "requests-columns");
  await page.getByRole("button", { name: "Next page" }).click();
  await page.waitForURL(/cursor=second/);
  forms = [form(1, "purchase"), form(2, "other")]; // of several workflows the columns stand below the title
  const sorted = page.waitForRequest((request) => /\/requests\?(?!.*cursor=).*sort=when/.test(request.url()));
  await page.getByRole("button", { name: "Created" }).click();
  await sorted;
  await page.getByText("Amount: 1,234.5").first().waitFor();
  await look(john, "requests-mixed");
  assert.equal(await page.evaluate(() => window.hit), undefined);
  await page.setViewportSize({ width: 320, height: 700 });
  assert.equal(await isTooWide(page), false, "the list scrolls sideways");
  await look(john, "requests-phone");
  await page.route("**/workflow/api/v1/requests?**", (route) => route.fulfill({ status: 403, contentType: "application/json", body: '{"error":"AccessDenied","message":"no"}' }));
  await page.reload();
  await page.getByText("You do not have access to this.").waitFor();
  await look(john, "requests-refused");
  await page.route("**/workflow/api/v1/requests?**", (route) => route.fulfill({ status: 500, contentType: "application/json", body: '{"error":"Internal","message":"no"}' }));
  await page.reload();
  await page.getByText("Loading failed.").waitFor();
  await closeWindow(john);
});

for (const [name, options] of Object.entries({
  dark: { colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 800 }, hasTouch: true },
  "phone-dark": { viewport: { width: 390, height: 800 }, hasTouch: true, colorScheme: "dark" },
  zoomed: { viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 }, // 1280 at 200 %
})) {
  test(`each page, ${name}`, async () => {
    const john = await openWindow(browser, service, options);
    const { page } = john;
    await signIn(john, "john.doe");
    await begin(john);
    await look(john, `${name}-form`);
    assert.equal(await isTooWide(page), false, "the form scrolls sideways");
    await page.getByLabel("Reason").fill("Something");
    await page.getByText(/Saved at/).waitFor();
    await page.goto(`${service.root}?tab=requests`);
    await page.getByRole("link", { name: "Leave request" }).first().waitFor();
    await look(john, `${name}-list`);
    assert.equal(await isTooWide(page), false, "the list scrolls sideways");
    await closeWindow(john);
  });
}

test("the login page and the error pages, in the reader's language and looks", async () => {
  for (const [name, options, title, missing] of [
    ["wide", {}, "Sign in", "Page not found"],
    ["dark", { colorScheme: "dark" }, "Sign in", "Page not found"],
    ["german-phone", { locale: "de-AT", viewport: { width: 320, height: 700 } }, "Anmelden", "Seite nicht gefunden"],
    ["no-motion", { reducedMotion: "reduce", forcedColors: "active" }, "Sign in", "Page not found"],
  ]) {
    const window = await openWindow(browser, service, options);
    const { page } = window;
    await page.goto(`${service.root}login`);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    await look(window, `login-${name}`);
    assert.equal(await isTooWide(page), false, "the login page scrolls sideways");
    await page.goto(`${service.root}nowhere`);
    await page.getByRole("heading", { level: 1, name: missing }).waitFor();
    await look(window, `not-found-${name}`);
    assert.equal(await isTooWide(page), false, "the error page scrolls sideways");
    await closeWindow(window);
  }
});

test("an error page needs no script, and who is signed in is not asked again", async () => {
  const bare = await openWindow(browser, service, { javaScriptEnabled: false });
  await bare.page.goto(`${service.root}nowhere`);
  await bare.page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
  await bare.page.goto(`${service.root}login`);
  assert.match(await bare.page.content(), /<noscript><p>Signing in with a password requires JavaScript/);
  await closeWindow(bare);
  const john = await openWindow(browser, service);
  await signIn(john, "john.doe");
  await john.page.goto(`${service.root}login?next=/%3Ftab=checklists`);
  await john.page.getByRole("tab", { name: "Checklists", selected: true }).waitFor();
  await closeWindow(john);
});

test("without a network nothing that was typed is lost", async () => {
  const john = await openWindow(browser, service);
  const { page, context } = john;
  await signIn(john, "john.doe");
  await begin(john);
  await context.setOffline(true);
  await page.getByLabel("Reason").fill("Typed in a tunnel");
  await page.getByText(/You are offline/).waitFor();
  await page.getByText(/Not saved/).waitFor();
  await context.setOffline(false);
  await page.getByText(/Saved at/).waitFor();
  await page.reload();
  assert.equal(await page.getByLabel("Reason").inputValue(), "Typed in a tunnel");
  await closeWindow(john);
});

test("a session that ended is said, and the page stays", async () => {
  const john = await openWindow(browser, service);
  const { page, context } = john;
  await signIn(john, "john.doe");
  await begin(john);
  const cookies = await context.cookies();
  await context.clearCookies();
  await page.getByLabel("Reason").fill("Still here");
  await page.getByText("You are signed out.").first().waitFor();
  await look(john, "signed-out");
  await page.getByRole("button", { name: /John Doe/ }).click();
  await page.getByRole("menuitemradio", { name: "Deutsch" }).click();
  await page.keyboard.press("Escape");
  await page.getByText("Sie sind abgemeldet.").first().waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Reason" }).inputValue(), "Still here");
  await context.addCookies(cookies);
  await page.getByText(/Gespeichert um/).waitFor();
  await closeWindow(john);
});

test("the first view is small enough for a slow line", async () => {
  const john = await openWindow(browser, service);
  const { page } = john;
  await signIn(john, "john.doe");
  const network = await page.context().newCDPSession(page);
  let bytes = 0;
  network.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await network.send("Network.enable");
  await network.send("Network.setCacheDisabled", { cacheDisabled: true });
  await page.goto(service.root);
  await page.getByRole("heading", { level: 1, name: "Work" }).waitFor();
  // 200 kB/s, and three round trips of 150 ms with connecting: 2 s are 310 kB.
  assert.ok(bytes > 50_000 && bytes < 250_000, `${bytes} bytes`);
  const listed = page.waitForRequest(/\/api\/v1\/tasks\?/);
  await page.route("**/session", (route) => listed.then(() => route.continue())); // the list does not wait for the session
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Work" }).waitFor();
  await closeWindow(john);
});
