// The page of those who run the service.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, hasFocus, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { answerLists, seed, session } from "./operations.mjs";
import { startService } from "./service.mjs";

let browser, service, made;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
  made = await seed(service);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

/** Presses Tab until something has the focus. */
async function tabTo(page, locator, most = 60) {
  for (let i = 0; i < most; i++) {
    if (await locator.evaluate((element) => element === document.activeElement).catch(() => false)) {
      return;
    }
    await page.keyboard.press("Tab");
  }
  assert.fail(`no key leads to ${locator}`);
}

test("what is stuck comes first, once for each reason, and all of it is retried at once", async () => {
  const paulo = await openWindow(browser, service);
  const { page } = paulo;
  await signIn(paulo, "paulo.santos", "operations");
  await page.getByRole("heading", { name: "Needs attention" }).waitFor();
  const row = page.getByRole("row").filter({ hasText: "division by zero" });
  await row.getByRole("cell", { name: "3", exact: true }).waitFor();
  await row.getByText(/^Fix the cause .*, then retry/).waitFor();
  await look(paulo, "operations-attention-stuck");
  await row.getByRole("button", { name: /^Retry all/ }).click();
  await page.getByText("3 failed again.").waitFor();
  await hasFocus(page.locator(".page-news .notice"));
  await row.getByRole("cell", { name: "3", exact: true }).waitFor();
  await closeWindow(paulo);
});

test("an operator finds a stuck instance, retries it, corrects it and moves another one, with the keyboard alone", async () => {
  const paulo = await openWindow(browser, service);
  const { page } = paulo;
  await signIn(paulo, "paulo.santos");
  const press = async (locator, key = "Enter") => {
    await locator.waitFor();
    await tabTo(page, locator);
    await page.keyboard.press(key);
  };
  await press(page.getByRole("link", { name: "Operations" }));
  await page.getByRole("heading", { name: "Operations", level: 1 }).waitFor();
  await press(page.getByRole("link", { name: /^Incidents/ }));
  await page.getByRole("heading", { name: "Incidents" }).waitFor();
  const failed = page.getByRole("row").filter({ hasText: "division by zero" });
  await failed.nth(2).waitFor();
  assert.equal(await failed.count(), 3);

  // Retried as it is, it fails again, and the page says why.
  const row = page.getByRole("row").filter({ hasText: made.first.slice(-6) });
  await press(row.getByRole("button", { name: /^Retry/ }));
  await page.getByText("failed again.").waitFor();
  await page.locator(".page-news").getByText(/division by zero/).waitFor();

  // Whoever may send events corrects the data; then it works.
  await (await session(service, "paulo.santos"))("POST", "workflow/api/v1/event", { workflowId: "claim", instanceId: made.first, event: { name: "correct", data: { people: 4 } } });
  await page.keyboard.press("Shift+Tab");
  await press(row.getByRole("button", { name: /^Retry/ }));
  await page.getByText("was retried successfully.").waitFor();
  await row.waitFor({ state: "detached" });

  // The next one is moved to the version that asks a person.
  await press(page.getByRole("row").filter({ hasText: made.third.slice(-6) }).getByRole("link"));
  await page.getByRole("heading", { name: "Claim of Carl" }).waitFor();
  await hasFocus(page.getByRole("heading", { name: "Claim of Carl" })); // it has come along
  await page.getByText("Failed", { exact: true }).waitFor();
  await look(paulo, "operations-inspect-wide");
  const step = page.getByLabel("“Being split” becomes");
  await step.waitFor();
  await tabTo(page, page.getByRole("button", { name: "Check" }));
  await page.keyboard.press("Enter");
  await page.getByText("Choose a target for each state.").waitFor();
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("I"); // In review
  await page.keyboard.press("Tab");
  await page.keyboard.press("C"); // Cancel all
  await press(page.getByRole("button", { name: "Check" }));
  await page.getByText("The instance can be moved to version 2.").waitFor();
  await press(page.getByRole("button", { name: "Move" }));
  await page.getByText("The instance was moved to version 2.").waitFor();
  await page.getByText("No running timers.").waitFor();
  await page.getByText("In review").first().waitFor();

  // What is left is dropped, after a question.
  await press(page.getByRole("link", { name: /^Incidents/ }));
  const last = page.getByRole("row").filter({ hasText: made.second.slice(-6) });
  const drop = last.getByRole("button", { name: /^Drop/ });
  await press(drop);
  const dialog = page.getByRole("dialog", { name: "Drop the incident?" });
  await dialog.waitFor();
  await look(paulo, "operations-drop");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await hasFocus(drop); // it comes back
  await page.keyboard.press("Enter");
  await press(dialog.getByRole("button", { name: "Drop" }));
  await page.getByText("No incidents").waitFor();
  await hasFocus(page.locator(".page-news .notice"));
  assert.deepEqual((await (await session(service, "paulo.santos"))("GET", "workflow/api/v1/incidents")).incidents, []);
  assert.equal(await page.evaluate(() => window.hit), undefined);
  await closeWindow(paulo);
});

test("conditions are rows or text, stand in the address, and are kept as views", async () => {
  const paulo = await openWindow(browser, service);
  const { page } = paulo;
  await signIn(paulo, "paulo.santos", "operations?section=instances&workflow=claim");
  await page.getByText("7 instances").waitFor();
  await page.getByRole("button", { name: "Add condition" }).click();
  await page.getByLabel("Field of condition 1").selectOption({ label: "Amount" });
  await page.getByLabel("Comparison of condition 1").selectOption({ label: "is at least" });
  await page.getByLabel("Value of condition 1").fill("2000");
  await page.keyboard.press("Enter");
  await page.getByText("3 instances").waitFor();
  await page.getByRole("button", { name: "Amount" }).click();
  await page.waitForURL(/sort=svcPublic.amount/);
  await page.getByRole("button", { name: "Amount" }).click();
  await page.waitForURL(/sort=-svcPublic.amount/);
  await page.getByRole("row").nth(1).getByRole("link", { name: "Claim of Gerda" }).first().waitFor();
  assert.match(decodeURIComponent(page.url()), /filter={"svcPublic.amount":{"\$gte":2000}}/);
  await look(paulo, "operations-filter-wide");

  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Save or remove…" }).click();
  await page.getByLabel("Name").fill("Large ones");
  await look(paulo, "operations-views");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Large ones" }).waitFor();
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.getByText("7 instances").waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Large ones" }).click();
  await page.getByText("3 instances").waitFor();
  await page.goBack();
  await page.getByText("7 instances").waitFor();

  await page.getByRole("button", { name: "Edit as text" }).click();
  await page.getByLabel("Filter as JSON").fill("{");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("This is not a JSON object.").waitFor();
  await page.getByLabel("Filter as JSON").fill('{"$or": [{"svcPublic.customer": "Dora"}, {"svcPublic.customer": "Emil"}]}');
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("2 instances").waitFor();
  assert.equal(await page.getByRole("button", { name: "Edit as rows" }).isDisabled(), true);
  await page.getByLabel("Filter as JSON").fill('{"nowhere": 1}');
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("The filter was not accepted.").waitFor();
  await page.getByText(/nowhere/).last().waitFor();
  await page.getByRole("link", { name: "Workflows" }).click();
  await page.getByRole("link", { name: /^Claim/ }).click();
  await page.getByRole("row").filter({ hasText: "In review" }).getByRole("link").click();
  await page.getByText("5 instances").waitFor();
  await page.getByRole("link", { name: /^Claim of Dora/ }).click();
  await page.waitForURL(/\/instances\/claim\//);
  await closeWindow(paulo);
});

test("who does not run the service sees neither the link nor the page", async () => {
  const john = await openWindow(browser, service);
  const { page } = john;
  await signIn(john, "john.doe", "operations");
  await page.getByText("You are not allowed to see this").waitFor();
  assert.equal(await page.getByRole("link", { name: "Operations" }).count(), 0);
  await look(john, "operations-refused");
  await closeWindow(john);
});

test("an administrator sees the health, as the service tells it, and nothing of workflows", async () => {
  const paulo = await openWindow(browser, service);
  const { page } = paulo;
  await page.route("**/session", async (route) => {
    const answer = await route.fetch();
    return answer.ok() ? route.fulfill({ response: answer, json: { ...(await answer.json()), privileges: ["mod-admin"] } }) : route.fulfill({ response: answer });
  });
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await signIn(paulo, "paulo.santos", "operations?section=incidents");
  await page.getByRole("heading", { name: "Health and load" }).waitFor();
  await page.getByText("Accepting requests").waitFor();
  await page.getByRole("cell", { name: "Stored definitions" }).waitFor();
  await page.getByRole("img", { name: /^Requests: now (?!0 )/ }).waitFor();
  assert.equal(await page.getByRole("navigation", { name: "Sections" }).getByRole("link").count(), 6);
  assert.deepEqual(asked.filter((url) => /incidents|outbox|definitions/.test(url.replace(/\?.*/, ""))), []);
  await look(paulo, "operations-admin");
  await closeWindow(paulo);
});

test("running timers are listed, and lead to their instances", async () => {
  const ask = await session(service, "paulo.santos");
  await ask("PUT", "workflow/api/v1/definitions/parcel/1", "id: parcel\nversion: 1\nname: Parcel\nstateMachines: {main: {states: {under-way: {label: On its way, after: {PT50H: lost}}, lost: {label: Given up as lost, type: final}}}}", "application/yaml");
  const { instanceId } = await ask("POST", "workflow/api/v1/create", { workflowId: "parcel" });
  const paulo = await openWindow(browser, service);
  const { page } = paulo;
  await signIn(paulo, "paulo.santos", "operations?section=timers");
  await page.getByLabel("Workflow").selectOption({ label: "Leave request" });
  await page.getByText("No running timers").waitFor();
  await page.getByLabel("Workflow").selectOption({ label: "Parcel" });
  const row = page.getByRole("row").filter({ hasText: instanceId.slice(-6) });
  await row.getByText("Changes to “Given up as lost”").waitFor();
  await row.getByText("Canceled when “On its way” is left").waitFor();
  await row.locator("time").waitFor();
  await row.getByRole("link", { name: "Timer of On its way after 50 h" }).click();
  await page.getByRole("heading", { name: "Parcel" }).waitFor();
  await page.getByText("Timer of On its way after 50 h").first().waitFor();
  await closeWindow(paulo);
});

test("refused, failed and empty are told apart", async () => {
  const paulo = await openWindow(browser, service);
  const { page } = paulo;
  const answers = [[403, { error: "AccessDenied", message: "access denied" }], [500, { error: "Internal", message: "it broke" }], [200, { outbox: [], next: null }]];
  let answer = 0;
  await page.route("**/workflow/api/v1/outbox?**", (route) => route.fulfill({ status: answers[answer][0], contentType: "application/json", body: JSON.stringify(answers[answer][1]) }));
  await signIn(paulo, "paulo.santos", "operations?section=outbox");
  for (const text of ["You are not allowed to see this", "Loading failed.", "No pending deliveries"]) {
    await page.getByText(text).waitFor();
    await look(paulo, `operations-outbox-${answers[answer][0]}`);
    answer = Math.min(answer + 1, 2);
    await page.reload();
  }
  await closeWindow(paulo);
});

const sizes = {
  wide: { viewport: { width: 1280, height: 900 } },
  "phone-dark": { viewport: { width: 390, height: 844 }, hasTouch: true, colorScheme: "dark" },
  "german-small": { locale: "de-DE", viewport: { width: 320, height: 700 }, hasTouch: true },
  forced: { viewport: { width: 1280, height: 900 }, forcedColors: "active" },
};

for (const [name, options] of Object.entries(sizes)) {
  test(`every section, ${name}`, async () => {
    const paulo = await openWindow(browser, service, options);
    const { page } = paulo;
    await answerLists(page);
    await signIn(paulo, "paulo.santos", "operations");
    const sections = {
      attention: page.getByText(/Failed delivery|Fehlgeschlagene Zustellung/).first(),
      workflows: page.getByRole("cell", { name: /^Claim/ }),
      "workflows&workflow=claim": page.getByRole("row").filter({ hasText: /In review|In Prüfung/ }),
      ...(name === "wide" ? { "workflows&workflow=purchase-order": page.getByRole("img") } : {}), // a large statechart
      "instances&workflow=claim": page.getByRole("link", { name: /Claim of Dora/ }).first(),
      [`instances&workflow=claim&instance=${made.second}`]: page.getByRole("button", { name: /^(Check|Prüfen)$/ }),
      tasks: page.getByRole("link", { name: /^Waiting for approval/ }).first(),
      incidents: page.getByRole("cell", { name: /Too many instances in the tree|Zu viele Instanzen im Baum/ }).first(),
      jobs: page.getByText("payments-1"),
      "jobs&type=charge-card": page.getByText("the bank does not answer").first(),
      outbox: page.getByText("connection refused").first(),
      timers: page.getByText(/ after 2 d 6 h| nach 2 d 6 h/).first(),
      schedules: page.getByText("nightly"),
      health: page.getByText("N0DE3"),
    };
    for (const [section, shown] of Object.entries(sections)) {
      await page.goto(`${service.root}operations?section=${section}`);
      await shown.waitFor();
      if (section === "health") {
        await page.waitForFunction(() => document.querySelectorAll(".spark-line").length === 8);
        await page.locator(".badge-waiting", { hasText: /Accepting requests|Nimmt Anfragen an/ }).waitFor(); // a shard has too few nodes
      }
      await look(paulo, `operations-${section.replace(/&.*=/, "-").toLowerCase().slice(0, 28)}-${name}`);
      assert.equal(await isTooWide(page), false, `${section} scrolls sideways`);
    }
    assert.equal(await page.evaluate(() => window.hit), undefined, "texts of workflows are text");
    await closeWindow(paulo);
  });
}
