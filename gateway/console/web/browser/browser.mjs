// A browser that holds every page to what the pages promise: nothing is asked of
// another server, nothing that the policy forbids is tried, no error is logged.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { password } from "./service.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.PICTURES;

export async function startBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
}

/** A window with cookies of its own. options are those of a browser context. */
export async function openWindow(browser, service, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, locale: "en-US", timezoneId: "UTC", ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const origin = new URL(service.root).origin;
  const wrong = [];
  page.on("request", (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (protocol.startsWith("http") && asked !== origin) {
      wrong.push(`asked ${request.url()}`);
    }
  });
  page.on("pageerror", (error) => wrong.push(`threw ${error.message}`));
  page.on("console", (message) => {
    // The browser itself logs each answer that is no success; pages expect some.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      wrong.push(`logged ${message.text()}`);
    }
  });
  return { context, page, wrong, service, checked: 0 };
}

/** Closes a window that did nothing wrong. */
export async function closeWindow(window) {
  await window.context.close();
  assert.deepEqual(window.wrong, []);
}

export async function signIn(window, user, next = "") {
  const { page, service } = window;
  await page.goto(service.root + next);
  await page.waitForURL(/\/login\?next=/);
  // By their ids: the words are in the language of the window.
  await page.locator("#user").fill(user);
  await page.locator("#password").fill(password);
  await page.locator("#submit").click();
  await page.waitForURL(service.root + next).catch(async (error) => {
    throw new Error(`${error.message}\nat ${page.url()}: ${await page.locator("body").innerText()}`);
  });
}

/**
 * Looks at a page with axe-core in a world of its own, where the page's policy
 * does not reach, and takes a picture when PICTURES names a folder. No finding
 * may be serious or critical. A list whose next rows are on their way is pale: it
 * waits for them.
 */
export async function look(window, name) {
  await window.page.locator("[aria-busy]").first().waitFor({ state: "detached" });
  assert.deepEqual(await findings(window.page), [], name);
  window.checked++;
  if (pictures) {
    mkdirSync(pictures, { recursive: true });
    await window.page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true, timeout: 60_000 });
  }
}

export async function findings(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      contextId: executionContextId, expression, awaitPromise: true, returnByValue: true,
    });
    assert.equal(exceptionDetails, undefined, exceptionDetails?.exception?.description);
    return result.value;
  };
  await evaluate(axe + ";0");
  const found = await evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")))`);
  await session.detach();
  return found;
}

/** Waits until something has the focus: a dialog that has gone gives it back a moment later. */
export const hasFocus = (locator) => locator.and(locator.page().locator(":focus")).waitFor();

/** Whether a page scrolls sideways. */
export const isTooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
