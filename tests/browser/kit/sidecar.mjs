// The real sidecar: `redflow serve --redflow-ui`, as it was built.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const built = new URL(`../../../target/debug/redflow${process.platform === "win32" ? ".exe" : ""}`, import.meta.url);
const ANSWERED = /^redflow_http_requests_total\{route="(.*)",status="(\d+)"\} (\d+)$/gm;
const EXAMPLE = new URL("../../../examples/redflow-agent.json", import.meta.url);

/** The program, as it was built. */
export function binary() {
  const path = process.env.REDFLOW_BIN || fileURLToPath(built);
  if (!existsSync(path)) {
    throw new Error(`${path} is not there: run \`cargo build\`, or name a redflow binary in REDFLOW_BIN`);
  }
  return path;
}

/** The example's nodes, to be changed at will. */
export const example = () => JSON.parse(readFileSync(EXAMPLE, "utf8"));

/** What it is told comes from its arguments alone. */
function environment() {
  const ours = Object.entries(process.env).filter(([name]) => !/^(REDFLOW|AZURE)_/.test(name));
  return Object.fromEntries(ours);
}

/** Starts one with the example, for the pages of one origin. */
export async function serve(t, { ui, listen = "127.0.0.1:0" }) {
  const path = mkdtempSync(join(tmpdir(), "redflow-browser-"));
  const [data, flows] = [join(path, "data"), join(path, "flows.json")];
  copyFileSync(EXAMPLE, flows);
  const args = ["serve", "--redflow-ui", ui, "--listen", listen, "--data", data, "--flows", flows];
  const child = spawn(binary(), args, { env: environment(), stdio: ["ignore", "ignore", "pipe"] });
  const gone = once(child, "exit");
  t.after(async () => {
    child.kill("SIGKILL");
    await gone;
    rmSync(path, { recursive: true, force: true });
  });
  let log = "";
  const url = await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`redflow serve left with ${code}:\n${log}`)));
    child.stderr.setEncoding("utf8").on("data", (text) => {
      log += text;
      const found = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(log);
      if (found) {
        resolve(found[1]);
      }
    });
  });
  const token = execFileSync(binary(), ["token", "--data", data], { env: environment(), encoding: "utf8" }).trim();
  const get = async (path) => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    if (answer.status !== 200) {
      throw new Error(`GET ${path}: ${answer.status} ${text}`);
    }
    return text;
  };
  return {
    url,
    port: Number(new URL(url).port),
    /** What somebody with the token is told. None of it goes through the browser. */
    ask: async (path) => JSON.parse(await get(path)),
    /** How many requests it has answered by now, by route and status: `{"/flows 200": 3}`. Not counting this. */
    answered: async () => {
      const lines = (await get("/metrics")).matchAll(ANSWERED);
      const counts = [...lines].map(([, route, status, count]) => [`${route} ${status}`, Number(count)]);
      return Object.fromEntries(counts.filter(([key]) => !key.startsWith("/metrics ")));
    },
    log: () => log,
  };
}
