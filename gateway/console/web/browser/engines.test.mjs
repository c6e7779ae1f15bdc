// The way of a request in the engines that are not Chromium's: an employee asks, a manager decides with a comment, and
// the employee is told.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { engines } from "./engines.mjs";
import { password, startService } from "./service.mjs";

let service;

before(async () => {
  // NB: where there is no test, nothing would end it.
  service = Object.keys(engines).length > 0 ? await startService() : undefined;
});
after(() => service?.stop());

async function signIn(window, user) {
  await window.goto(service.root);
  await window.at(`${service.root}login`);
  await window.type("User", user);
  await window.type("Password", password);
  await window.see("button", "Sign in"); // it can be pressed when the page's script is there
  await window.press("Enter");
  await window.see("heading", "Work");
}

async function look(window, what) {
  assert.deepEqual(await window.findings(), [], what);
}

for (const [name, start] of Object.entries(engines)) {
  test(`a request in ${name}`, async () => {
    const browser = await start();
    try {
      const john = await browser.open();
      await signIn(john, "john.doe");
      await john.click("button", "New");
      await john.click("item", "New request");
      await john.click("text", "Leave request");
      await john.click("button", "Continue");
      await john.see("heading", "Leave request");
      await look(john, "form");
      await john.type("Days off", "5");
      await john.type("Reason", `Skiing in ${name}`);
      await john.see("text", "Saved at");
      await john.focus("button", "Submit");
      await john.press("Enter");
      await john.see("text", "Form submitted.");
      await john.close();

      const mary = await browser.open();
      await signIn(mary, "mary.major");
      await look(mary, "work");
      await mary.click("link", "Leave for John Doe, 5 days");
      await mary.see("text", "Waiting for a manager");
      await look(mary, "instance");
      await mary.click("button", "Approve");
      await mary.see("heading", "Approve"); // of the dialog: the page has a comment, too
      await mary.type("Comment", "Enjoy!");
      await mary.focus("button", "Approve");
      await mary.press("Enter");
      await mary.see("text", "Done: Approve.");
      await mary.close();

      const johnAgain = await browser.open();
      await signIn(johnAgain, "john.doe");
      await johnAgain.goto(`${service.root}?tab=requests&show=submitted`);
      await johnAgain.click("link", "Leave for John Doe, 5 days");
      await johnAgain.see("text", "Approved");
      await johnAgain.see("text", "Enjoy!");
      await johnAgain.close();
    } finally {
      await browser.stop();
    }
  });
}
