// Firefox and WebKit, as Debian has them. They are driven in two ways, and used in one: a page finds things by their
// role and name, as people do.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const patience = 60_000;

/** The engines whose programs are named in the environment: name → a function that starts one. */
export const engines = Object.fromEntries(
  [
    ["firefox", process.env.FIREFOX && (() => startFirefox(process.env.FIREFOX))],
    ["webkit", process.env.WEBKIT_DRIVER && (() => startWebKit(process.env.WEBKIT_DRIVER, process.env.WEBKIT))],
  ].filter(([, start]) => start),
);

/** Runs in the page: the element of a kind with a name, in the dialog while one is open. */
function search(kind, name) {
  const kinds = { button: "button, [role=button]", link: "a[href]", tab: "[role=tab]", item: "[role=menuitem]", heading: "h1, h2, h3", field: "input, textarea, select", text: "body *" };
  const within = document.querySelector("[role=dialog], dialog[open]") ?? document;
  const words = (text) => (text ?? "").replace(/\s+/g, " ").trim();
  return [...within.querySelectorAll(kinds[kind])].find((element) => {
    const names = kind === "field" ? [...(element.labels ?? [])].map((label) => label.textContent) : [element.textContent];
    const own = kind === "text" ? [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("") : null;
    const fits = own === null ? [element.getAttribute("aria-label"), ...names].some((text) => words(text).startsWith(name)) : words(own).includes(name);
    return fits && element.getClientRects().length > 0 && !element.disabled;
  }) ?? null;
}

/** A window of either engine. driver has how it is driven. */
function windowOf(driver) {
  const until = async (what, look) => {
    for (const end = Date.now() + patience; ; ) {
      // Between two pages nothing can be asked, and a page that is drawn anew takes an element away, or moves something before it.
      let fault = "";
      const found = await look().catch((error) => void (fault = ` (${error.message})`));
      if (found) {
        return found;
      }
      if (Date.now() > end) {
        throw new Error(`not there: ${what}${fault}, at ${await driver.evaluate("return location.href")}: ${await driver.evaluate("return document.body.innerText")}`);
      }
      await new Promise((done) => setTimeout(done, 100));
    }
  };
  const find = (kind, name) => until(`${kind} ${name}`, () => driver.element(`return (${search})(...arguments)`, kind, name));
  return {
    goto: driver.goto,
    close: driver.close,
    press: driver.press,
    evaluate: driver.evaluate,
    see: async (kind, name) => void (await find(kind, name)),
    click: (kind, name) =>
      until(`${kind} ${name} in reach`, async () => {
        await driver.click(await find(kind, name));
        return true;
      }),
    type: async (name, text) => driver.type(await find("field", name), text),
    focus: async (kind, name) => driver.evaluate("arguments[0].focus()", await find(kind, name)),
    at: (address) => until(address, async () => String(await driver.evaluate("return location.href")).startsWith(address)),
    findings: async () => {
      await driver.evaluate(`${axe};0`);
      return driver.wait(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
        .filter((v) => v.impact === "serious" || v.impact === "critical")
        .map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")))`);
    },
  };
}

/** Firefox speaks WebDriver BiDi itself. */
async function startFirefox(program) {
  const browser = await puppeteer.launch({ browser: "firefox", executablePath: program, headless: true, timeout: patience });
  const open = async () => {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patience);
    const call = (body, args) => page.evaluateHandle((text, ...rest) => new Function(text)(...rest), body, ...args);
    return windowOf({
      goto: (address) => page.goto(address),
      close: () => context.close(),
      press: (key) => page.keyboard.press(key),
      element: async (body, ...args) => (await call(body, args)).asElement(),
      evaluate: async (body, ...args) => (await call(body, args)).jsonValue(),
      wait: (expression) => page.evaluate(expression),
      click: (element) => element.click(),
      type: (element, text) => element.type(text),
    });
  };
  return { open, stop: () => browser.close() };
}

/** WebKit is driven by its own WebDriver, and draws on a screen that only exists in memory. */
async function startWebKit(driver, program) {
  const stops = new Set();
  // Each window has a driver of its own. Now and then a driver waits for ever for the browser that it started: whoever
  // waits so long for a window gets another.
  const open = async () => {
    for (let tries = 3; ; tries--) {
      const { ask, stop } = await startDriver(driver);
      stops.add(stop);
      const end = async () => {
        stops.delete(stop);
        await stop();
      };
      try {
        const { sessionId } = await ask("POST", "/session", {
          capabilities: { alwaysMatch: { "webkitgtk:browserOptions": { binary: program, args: ["--automation"] } } },
        });
        return webKitWindow((method, path, body) => ask(method, `/session/${sessionId}${path}`, body), end);
      } catch (error) {
        await end();
        if (tries === 1) {
          throw error;
        }
      }
    }
  };
  return { open, stop: () => Promise.all([...stops].map((stop) => stop())) };
}

function webKitWindow(ask, end) {
  const run = (script, args) => ask("POST", "/execute/sync", { script, args });
  const key = "element-6066-11e4-a52e-4f735466cecf";
  return windowOf({
    goto: (address) => ask("POST", "/url", { url: address }),
    close: end,
    press: (name) => ask("POST", "/actions", { actions: [{ type: "key", id: "keyboard", actions: ["keyDown", "keyUp"].map((type) => ({ type, value: keys[name] ?? name })) }] }),
    element: (body, ...args) => run(body, args),
    evaluate: (body, ...args) => run(body, args),
    wait: (expression) => ask("POST", "/execute/async", { script: `const done = arguments[0]; (${expression}).then(done)`, args: [] }),
    click: (element) => ask("POST", `/element/${element[key]}/click`, {}),
    type: (element, text) => ask("POST", `/element/${element[key]}/value`, { text }),
  });
}

/** Starts a driver: ask sends it a command and gives the value of its answer, stop ends it and its browser. */
async function startDriver(program) {
  const port = await freePort();
  const child = spawn("xvfb-run", ["-a", program, `--port=${port}`], { stdio: "ignore", detached: true });
  const ended = once(child, "exit");
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid, "SIGTERM");
    }
    await ended;
  };
  const ask = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, signal: AbortSignal.timeout(patience), ...(body && { body: JSON.stringify(body) }) });
    const { value } = await answer.json();
    if (!answer.ok) {
      throw new Error(`${path}: ${value?.error}: ${value?.message}`);
    }
    return value;
  };
  for (const end = Date.now() + patience; !(await ask("GET", "/status").catch(() => null)); ) {
    if (Date.now() > end || child.exitCode !== null) {
      await stop();
      throw new Error("WebKit's driver does not start");
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  return { ask, stop };
}

const keys = { Enter: "\uE007", Tab: "\uE004", Escape: "\uE00C" };

/** A free port below those that systems give to connections, so that none takes it before the driver has it. */
async function freePort() {
  for (;;) {
    const server = createServer().listen(12_000 + Math.floor(Math.random() * 18_000), "127.0.0.1");
    if (await once(server, "listening").catch(() => false)) {
      const { port } = server.address();
      server.close();
      await once(server, "close");
      return port;
    }
  }
}
