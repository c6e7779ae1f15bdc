// The way of a request in the engines that are not Chromium's: an employee asks, a manager decides with a comment, and
// the employee is told.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { engines } from "./engines.mjs";
import { password, startService } from "./service.mjs";

let service;

before(async () => {
  service = await startService();
});
after(() => service?.stop());

async function signIn(window, user) {
  await window.goto(service.root);
  await window.at(`${service.root}login`);
  await window.type("User", user);
  await window.type("Password", password);
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
      await look(john, "work");
      await john.close();
    } finally {
      await browser.stop();
    }
  });
}
