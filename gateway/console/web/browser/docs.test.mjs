// The page that describes the interface, in a real browser against the real program.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeWindow, isTooWide, look, openWindow, startBrowser } from "./browser.mjs";
import { startService } from "./service.mjs";

let browser, service;

before(async () => {
  [browser, service] = await Promise.all([startBrowser(), startService()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

test("the description of the interface", async () => {
  for (const options of [{}, { viewport: { width: 390, height: 800 }, colorScheme: "dark" }, { viewport: { width: 320, height: 800 } }]) {
    const window = await openWindow(browser, service, options);
    const { page } = window;
    await page.goto(service.root + "docs");
    await page.getByRole("link", { name: "Workflows", exact: true }).click();
    await page.locator("#queryInstances .faults summary").click();
    await page.locator("#queryInstances").getByText("The request is malformed").waitFor();
    assert.equal(await isTooWide(page), false);
    if (options.viewport?.width !== 320) {
      await look(window, `docs-${options.viewport?.width ?? "wide"}`); // it is long: half a minute
    }
    await closeWindow(window);
  }
});
