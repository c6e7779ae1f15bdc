// The real program, on a home of its own that goes with it.
import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, createWriteStream } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";

export const password = "an old oak, 1843";

/** A port that is free now. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/**
 * Starts the program named by TROUPE_PROGRAM. settings are its environment.
 * Returns its root address and a function that ends it.
 */
export async function startService(settings = {}) {
  const program = process.env.TROUPE_PROGRAM;
  if (!program) {
    throw new Error("TROUPE_PROGRAM must name the built program; .ci/browser does so");
  }
  const work = mkdtempSync(join(tmpdir(), "troupe-browser-"));
  const home = join(work, "home");
  const port = await freePort();
  const basePath = settings.TROUPE_BASE_PATH ?? "";
  const env = { ...process.env, ...settings };
  const child = spawn(program, ["serve", "--home", home, "--listen", `127.0.0.1:${port}`], { env, stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(join(work, "log"));
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  const root = `http://127.0.0.1:${port}${basePath}/`;
  const stop = async () => {
    if (child.exitCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(work, { recursive: true, force: true });
  };
  for (const until = Date.now() + 30_000; ; ) {
    const ready = await fetch(root + "readyz").then((answer) => answer.ok).catch(() => false);
    if (ready) {
      break;
    }
    if (child.exitCode !== null || Date.now() > until) {
      await stop();
      throw new Error("the program does not become ready");
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  for (const user of ["john.doe", "mary.major"]) {
    execFileSync(program, ["password", "set", "--home", home, "--user", user], { input: password + "\n", env, stdio: ["pipe", "ignore", "inherit"] });
  }
  return { root, stop };
}
