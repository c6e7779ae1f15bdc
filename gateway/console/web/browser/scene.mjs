// What people do again and again on these pages.
import assert from "node:assert/strict";
import { look } from "./browser.mjs";

/** Opens the page of a new form or checklist. It is made when something is typed into it. */
export async function make(window, kind, name) {
  const { page } = window;
  await page.goto(window.service.root);
  const words = kind === "checklist" ? "New checklist" : "New request";
  await page.getByRole("button", { name: /^New/ }).first().click();
  const item = page.getByRole("menuitem", { name: words });
  await item.or(page.getByRole("radio")).first().waitFor();
  if ((await item.count()) > 0) {
    await item.click(); // who can make both has a menu
  }
  await page.getByRole("dialog").getByRole("radio", { name }).check();
  await look(window, `new-${kind}`);
  await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  assert.match(page.url(), kind === "checklist" ? /\/new-checklist\/index\.html$/ : /\/new\/index\.html$/);
}

/** The address of a form that was made while its page was open. */
export async function addressOf(page) {
  await page.waitForURL(/\/[0-9A-Z]{26}\/index\.html$/);
  return page.url();
}

/** Changes something and waits until the draft is saved. NB: "Saving…" may pass unseen. */
export async function saved(page, change) {
  const answered = page.waitForResponse((answer) => answer.request().method() === "PUT" && answer.url().includes("/api/v1/draft/"));
  await change();
  assert.equal((await answered).status(), 200);
  await page.getByText(/Saved at/).waitFor();
}

/** Lets the service carry out a request, and loses the answer. */
export async function lose(route) {
  await route.fetch();
  await route.abort();
}
