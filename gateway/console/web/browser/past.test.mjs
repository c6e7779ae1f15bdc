// The history of an instance under its chart: what it was, what each entry changed, and the way back, also for many at once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, hasFocus, isTooWide, look, openWindow, signIn, startBrowser } from "./browser.mjs";
import { session } from "./operations.mjs";
import { startService } from "./service.mjs";

const supply = `
id: supply
version: 1
name: Supply
columns: [{path: svcPublic.amount, label: {en: Amount, de: Betrag}}]
context: {svcPublic: {item: Pens, amount: 10, to: {city: Bonn}}, svcPrivate: {margin: 1}}
events:
  change: {label: {en: Change, de: Ändern}, done: {en: changed it, de: hat geändert}}
  approve: {label: {en: Approve, de: Genehmigen}, done: {en: approved it, de: hat genehmigt}}
stateMachines:
  main:
    states:
      draft:
        label: {en: Draft, de: Entwurf}
        on:
          change: {actions: [{assign: {svcPrivate.margin: '\${svcPublic.amount / 5}'}}]}
          note: {}
          send: review
      review: {label: {en: In review, de: In Prüfung}, tone: waiting, on: {approve: approved}}
      approved: {type: final, label: {en: Approved, de: Genehmigt}, tone: good}
`;

let browser, service, paulo;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
  paulo = await session(service, "paulo.santos");
  await paulo("PUT", "workflow/api/v1/definitions/supply/1", supply, "application/yaml");
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

/** An instance that has had some events, each a name with data. */
async function supplied(...events) {
  const { instanceId } = await paulo("POST", "workflow/api/v1/create", { workflowId: "supply" });
  for (const [name, data] of events) {
    await send(instanceId, name, data);
  }
  return instanceId;
}

const send = (instanceId, name, data) => paulo("POST", "workflow/api/v1/event", { workflowId: "supply", instanceId, event: { name, data } });

/** The words of a page in its language. */
const words = {
  en: { history: "History", card: /^(After entry|Current state)/, after: (n) => `After entry ${n}`, changed: "What changed" },
  de: { history: "Verlauf", card: /^(Nach Eintrag|Aktueller Stand)/, after: (n) => `Nach Eintrag ${n}`, changed: "Was sich geändert hat" },
};

function partsOf(page, { history, card, after: title, changed } = words.en) {
  const region = page.getByRole("region", { name: card });
  return {
    region,
    slider: region.getByRole("slider", { name: history }),
    said: region.getByRole("status").filter({ has: page.locator("p") }).first(),
    changed: region.getByRole("region", { name: changed }),
    /** Waits until the chart is drawn as after an entry, in a state. */
    drawn: async (entry, node) => {
      await page.getByRole("heading", { level: 2, name: title(entry), exact: true }).waitFor();
      const picture = region.locator(`img:not([aria-busy])[src*='${encodeURIComponent(` now" data-machine="main" data-node="${node}"`)}']`);
      await picture.waitFor();
      assert.equal(await picture.evaluate((img) => img.decode().then(() => img.naturalWidth > 0)), true);
    },
  };
}

test("whoever has a keyboard alone goes through the history, and sees what each entry has changed", async () => {
  const id = await supplied(["change", { amount: 25, to: { city: "Köln" } }], ["send"], ["approve"]);
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", `instances/supply/${id}`);
  const { slider, said, changed, drawn, region } = partsOf(page);
  await slider.waitFor();
  assert.equal(await slider.getAttribute("aria-valuetext"), "Now");
  await said.getByText("Now, after 4 entries").waitFor();
  await look(operator, "past-now");
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await drawn(4, "approved");
  assert.equal(await slider.getAttribute("aria-valuetext"), "Entry 4 of 4");
  await said.getByText("Paulo Santos approved it").waitFor();
  await said.locator("time").waitFor();
  await changed.getByText("In review").waitFor();
  await changed.getByText("Approved").waitFor();
  await changed.getByText("No data changed.").waitFor();
  await hasFocus(slider);

  await page.keyboard.press("Home");
  await drawn(1, "draft");
  await page.waitForURL(/[?&]at=1$/);
  await said.getByText("Paulo Santos created the request").waitFor();
  await page.keyboard.press("ArrowRight");
  await drawn(2, "draft");
  await said.getByText("Paulo Santos changed it").waitFor();
  const rows = changed.locator(".fact");
  await changed.getByText("Amount").waitFor();
  assert.deepEqual(await rows.evaluateAll((all) => all.map((row) => row.innerText.split(/\s+/).join(" "))), ["Amount 10 to 25", "To › City Bonn to Köln", "Margin 1 to 5"]);
  await changed.getByRole("heading", { name: "Private data" }).waitFor();
  const data = region.locator("details");
  await data.getByText("Köln").waitFor();
  await look(operator, "past-changed");

  // The address has the entry, and Now takes it out.
  await page.reload();
  await drawn(2, "draft");
  await slider.focus();
  await page.keyboard.press("End");
  await page.getByRole("heading", { name: "Current state" }).waitFor();
  assert.doesNotMatch(page.url(), /at=/);
  await page.getByRole("button", { name: "One entry back" }).focus();
  await page.keyboard.press("Enter");
  await drawn(4, "approved");
  await page.goto(`${service.root}instances/supply/${id}?at=99`);
  await page.getByRole("heading", { name: "Current state" }).waitFor();
  await said.getByText("Now, after 4 entries").waitFor();
  await closeWindow(operator);

  // Who does not run the service sees no private data, and cannot reset.
  const john = await openWindow(browser, service, { colorScheme: "dark" });
  await signIn(john, "john.doe", `instances/supply/${id}?at=2`);
  const shown = partsOf(john.page);
  await shown.drawn(2, "draft");
  await shown.changed.getByText("Köln").waitFor();
  assert.equal(await shown.changed.getByText("Margin").count(), 0);
  assert.equal(await john.page.getByRole("button", { name: /^Reset/ }).count(), 0);
  await look(john, "past-dark");
  await closeWindow(john);
});

test("the slider asks for what it rests at alone, in a history of thousands", async () => {
  const id = await supplied();
  const many = 2_000;
  for (let sent = 0; sent < many; sent += 1_000) {
    const { results } = await paulo("POST", "workflow/api/v1/events", Array.from({ length: 1_000 }, (_, n) => ({ workflowId: "supply", instanceId: id, event: { name: "note", data: { item: `Pen ${sent + n + 1}` } } })));
    assert.ok(results.every(({ status }) => status === 200), JSON.stringify(results[0]));
  }
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", `instances/supply/${id}`);
  const { slider, said, changed, drawn } = partsOf(page);
  await said.getByText("Now, after 2,001 entries").waitFor();
  const asked = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    const of = pathname.split("/").at(-1);
    if (searchParams.has("at") || searchParams.has("from")) {
      asked.push(`${of === id ? "instance" : of} ${searchParams.get("at") ?? searchParams.get("from")}`);
    }
  });
  /** Drags over some entries, quicker than anything can be asked for. */
  const drag = (...over) =>
    slider.evaluate((input, places) => {
      for (const place of places) {
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, place);
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }, over);
  await drag(...Array.from({ length: 1_000 }, (_, n) => many - n), 990);
  await drawn(990, "draft");
  await changed.getByText("Pen 989").waitFor();
  assert.deepEqual(asked.toSorted(), ["activity 951", "diagram 990", "instance 989", "instance 990"]);
  await slider.press("ArrowLeft");
  await drawn(989, "draft");
  await changed.getByText("Pen 987").waitFor();
  await said.getByText("Entry 989 of 2,001").waitFor();
  assert.deepEqual(asked.slice(4).toSorted(), ["diagram 989", "instance 988"], "what is known is not asked for again");
  await look(operator, "past-long");
  await closeWindow(operator);
});

test("where data was not kept, the page says so and shows the states", async () => {
  const id = await supplied(["note", { item: "x".repeat(17_000) }], ["send"]);
  const reader = await openWindow(browser, service, { locale: "de-DE", viewport: { width: 320, height: 700 } });
  const { page } = reader;
  await signIn(reader, "paulo.santos", `instances/supply/${id}?at=3`);
  const { drawn, changed, region, said } = partsOf(page, words.de);
  await drawn(3, "review");
  await said.getByText("Eintrag 3 von 3").waitFor();
  await changed.getByText("In Prüfung").waitFor();
  await region.getByText("Die Angaben nach diesem Eintrag wurden nicht aufbewahrt.").waitFor();
  assert.equal(await page.getByRole("button", { name: /zurücksetzen/ }).count(), 0);
  await look(reader, "past-not-kept");
  assert.equal(await isTooWide(page), false, "it scrolls sideways");
  await page.getByRole("button", { name: "Einen Eintrag zurück" }).click();
  await page.getByRole("button", { name: "Einen Eintrag zurück" }).click();
  await drawn(1, "draft");
  await changed.getByText("nichts").first().waitFor();
  await changed.getByText("Bonn").waitFor();
  assert.equal(await isTooWide(page), false, "it scrolls sideways");
  await look(reader, "past-small");
  await closeWindow(reader);
});

test("an operator makes an instance what it was, with a reason, unless it has moved meanwhile", async () => {
  const id = await supplied(["change", { amount: 25 }], ["send"]);
  const operator = await openWindow(browser, service);
  const { page } = operator;
  await signIn(operator, "paulo.santos", `instances/supply/${id}?at=2`);
  const { drawn, said, changed } = partsOf(page);
  await drawn(2, "draft");
  const open = page.getByRole("button", { name: "Reset to here…" });
  const dialog = page.getByRole("dialog", { name: "Reset to entry 2?" });
  const yes = dialog.getByRole("button", { name: "Reset", exact: true });
  await open.focus();
  await page.keyboard.press("Enter");
  await dialog.getByText(/jobs, timers and tasks of now are canceled/).waitFor();
  assert.equal(await yes.isDisabled(), true, "without a reason");
  await look(operator, "past-reset");
  await page.keyboard.press("Escape");
  await hasFocus(open);
  await page.keyboard.press("Enter");
  await dialog.getByLabel("Reason").fill("The amount was right.");
  await send(id, "approve");
  await yes.click();
  await dialog.getByText("The status has changed in the meantime.").waitFor();
  await page.keyboard.press("Escape");
  await said.getByText("Entry 2 of 4").waitFor();
  await open.click();
  await dialog.getByLabel("Reason").fill("The amount was right.");
  await dialog.getByLabel("Reason").press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("Done: Reset to entry 2.").waitFor();
  await hasFocus(page.locator(".page-news .notice"));
  await drawn(5, "draft");
  await said.getByText("Paulo Santos reset the request to entry 2").waitFor();
  await changed.getByText("Approved").waitFor();
  const activity = page.getByRole("region", { name: "Activity" });
  await activity.getByText("reset the request to entry 2").waitFor();
  await activity.getByText("The amount was right.").waitFor();
  await look(operator, "past-reset-done");
  const { state } = await paulo("GET", `workflow/api/v1/instance/supply/${id}`);
  assert.equal(state.states[0].nodeId, "draft");
  await closeWindow(operator);
});

test("an operator resets many at once", async () => {
  const ids = [await supplied(["change", { amount: 7 }], ["send"]), await supplied(["change", { amount: 7 }], ["send"], ["approve"])];
  const operator = await openWindow(browser, service);
  const { page } = operator;
  const filter = encodeURIComponent(JSON.stringify({ "svcPublic.amount": 7 }));
  await signIn(operator, "paulo.santos", `operations?section=bulk&new=1&workflow=supply&filter=${filter}`);
  const form = page.getByRole("region", { name: "New bulk job" });
  await form.getByLabel("What to do").selectOption({ label: "Reset to an earlier entry" });
  await form.getByText("Enter an entry and a reason to see how many instances match.").waitFor();
  await form.getByLabel(/^Entry of the history/).fill("1");
  await form.getByLabel("Reason").fill("A wrong amount");
  await form.getByText("2 instances match now.").waitFor();
  await look(operator, "operations-bulk-reset");
  await form.getByRole("button", { name: "Start" }).click();
  const dialog = page.getByRole("dialog", { name: "Reset to entry 1?" });
  await dialog.getByText(/those of the states then start again/).waitFor();
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.getByRole("row").filter({ hasText: "Reset to entry 1" }).getByText("Done").waitFor();
  for (const id of ids) {
    const { state } = await paulo("GET", `workflow/api/v1/instance/supply/${id}`);
    assert.deepEqual([state.states[0].nodeId, state.svcPublic.amount], ["draft", 10]);
  }
  await closeWindow(operator);
});
