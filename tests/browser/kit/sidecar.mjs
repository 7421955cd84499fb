// Starts the real sidecar (`redflow serve`) from the built binary.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const built = new URL(`../../../target/debug/redflow${process.platform === "win32" ? ".exe" : ""}`, import.meta.url);
const REQUEST_COUNT = /^redflow_http_requests_total\{route="(.*)",status="(\d+)"\} (\d+)$/gm;
const EXAMPLE = new URL("../../../examples/redflow-agent.json", import.meta.url);

/** The path of the binary. */
export function binary() {
  const path = process.env.REDFLOW_BIN || fileURLToPath(built);
  if (!existsSync(path)) {
    throw new Error(`${path} does not exist: run \`cargo build\`, or name a redflow binary in REDFLOW_BIN`);
  }
  return path;
}

/** A new copy of the example's nodes. */
export const example = () => JSON.parse(readFileSync(EXAMPLE, "utf8"));

/** The environment without variables that would change its configuration. */
function environment() {
  const allowed = Object.entries(process.env).filter(([name]) => !/^(REDFLOW|AZURE)_/.test(name));
  return Object.fromEntries(allowed);
}

/** Starts a sidecar with the example flow. It allows the origin `ui`, and has the console of a folder instead of its own. */
export async function serve(t, { ui, listen = "127.0.0.1:0", consoleFolder }) {
  const path = mkdtempSync(join(tmpdir(), "redflow-browser-"));
  const [data, flows] = [join(path, "data"), join(path, "flows.json")];
  copyFileSync(EXAMPLE, flows);
  let [child, exited, log] = [null, Promise.resolve(), ""];
  /** Starts it at an address, and returns its URL. */
  const start = async (listen) => {
    const args = ["serve", ...(ui ? ["--redflow-ui", ui] : []), "--listen", listen, "--data", data, "--flows", flows];
    const env = { ...environment(), ...(consoleFolder ? { REDFLOW_CONSOLE: consoleFolder } : {}) };
    child = spawn(binary(), args, { env, stdio: ["ignore", "ignore", "pipe"] });
    exited = once(child, "exit");
    const logStart = log.length;
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`redflow serve exited with ${code}:\n${log}`)));
      child.stderr.setEncoding("utf8").on("data", (text) => {
        log += text;
        const found = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(log.slice(logStart));
        if (found) {
          resolve(found[1]);
        }
      });
    });
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  t.after(async () => {
    await kill();
    rmSync(path, { recursive: true, force: true });
  });
  const url = await start(listen);
  const token = execFileSync(binary(), ["token", "--data", data], { env: environment(), encoding: "utf8" }).trim();
  const getText = async (path) => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
    const text = await response.text();
    if (response.status !== 200) {
      throw new Error(`GET ${path}: ${response.status} ${text}`);
    }
    return text;
  };
  return {
    url,
    port: Number(new URL(url).port),
    token,
    data,
    /** Sends a GET request with the token, not through the browser. */
    get: async (path) => JSON.parse(await getText(path)),
    /** The number of requests so far by route and status, such as `{"/flows 200": 3}`, without `/metrics`. */
    requestCounts: async () => {
      const lines = (await getText("/metrics")).matchAll(REQUEST_COUNT);
      const counts = [...lines].map(([, route, status, count]) => [`${route} ${status}`, Number(count)]);
      return Object.fromEntries(counts.filter(([key]) => !key.startsWith("/metrics ")));
    },
    log: () => log,
    /** Ends it without a warning. */
    kill,
    /** Starts it again with the same address and data. */
    restart: () => start(new URL(url).host),
  };
}
