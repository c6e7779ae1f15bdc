// The real program, on a home of its own that goes with it.
import { spawn, execFileSync } from "node:child_process";
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";

export const password = "an old oak, 1843";

/**
 * Starts the program named by TROUPE_PROGRAM. settings are its environment.
 * Returns its root address, and functions that change a file of its home, sign
 * somebody in without a browser, and end it.
 */
export async function startService(settings = {}) {
  const program = process.env.TROUPE_PROGRAM;
  if (!program) {
    throw new Error("TROUPE_PROGRAM must name the built program; .ci/browser does so");
  }
  const work = mkdtempSync(join(tmpdir(), "troupe-browser-"));
  const home = join(work, "home");
  const basePath = settings.TROUPE_BASE_PATH ?? "";
  const env = { TROUPE_COMMIT_WAIT_MAX: "2m", ...process.env, ...settings }; // a busy machine is not taken for a disk that hangs
  const child = spawn(program, ["serve", "--home", home, "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(join(work, "log"));
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  let said = "", shown = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (said += text));
  child.stdout.setEncoding("utf8").on("data", (text) => (shown += text));
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  const stop = async () => {
    if (!ended()) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(work, { recursive: true, force: true });
  };
  let root = "";
  for (const until = Date.now() + 120_000; ; ) {
    const address = /"address":"([^"]+)".*"message":"listening"/.exec(said)?.[1];
    root = `http://${address}${basePath}/`;
    if (address && (await fetch(root + "readyz").then((answer) => answer.ok).catch(() => false))) {
      break;
    }
    if (ended() || Date.now() > until) {
      await stop();
      throw new Error("the program does not become ready");
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  const setPassword = (user) =>
    execFileSync(program, ["password", "set", "--home", home, "--user", user], { input: password + "\n", env, stdio: ["pipe", "ignore", "inherit"] });
  ["john.doe", "mary.major", "paulo.santos"].forEach(setPassword);
  /** Somebody who uses the interface without a browser: asks for a path of it, or sends a body there. */
  const caller = async (user) => {
    setPassword(user);
    const json = { "Content-Type": "application/json" };
    const signedIn = await fetch(root + "session", { method: "POST", headers: json, body: JSON.stringify({ user, password }) });
    const cookie = signedIn.headers.get("set-cookie").split(";")[0];
    const go = async (path, init) => {
      const answer = await fetch(`${root}workflow/api/v1/${path}`, { ...init, headers: { ...json, cookie } });
      if (!answer.ok) {
        throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      }
      return answer.json();
    };
    return { read: (path) => go(path, {}), ask: (path, body) => go(path, { method: "POST", body: JSON.stringify(body) }) };
  };
  /** A new API token of somebody. */
  const token = (user) => execFileSync(program, ["token", "create", "--home", home, "--user", user], { env, encoding: "utf8" }).trim();
  /** Changes a file of the home, or makes it, and waits until the service has read it. */
  const change = async (path, edit) => {
    const before = existsSync(join(home, path)) ? readFileSync(join(home, path), "utf8") : "";
    const after = edit(before);
    if (after === before) {
      throw new Error(`${path} was not changed`);
    }
    const from = said.length;
    writeFileSync(join(home, path), after);
    for (const until = Date.now() + 120_000; !said.slice(from).includes("are in use"); ) {
      if (Date.now() > until) {
        throw new Error(`${path} is not read again: ${said.slice(from)}`);
      }
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  /** The links that the first start prints when it is ready: for an employee, a manager and an operator. */
  const links = async () => {
    for (const until = Date.now() + 120_000; ; ) {
      const found = shown.match(/http:\S+#link=\S+(?=\s)/g) ?? [];
      if (found.length === 3) {
        return found;
      }
      if (Date.now() > until) {
        throw new Error(`the links are not printed: ${shown}`);
      }
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  return { root, stop, change, caller, links, token };
}
