// A sidecar beside Node-RED, as somebody runs it by hand: `redflow serve`, which can be killed and come back where it was.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { binary } from "./sidecar.mjs";
import { PATIENCE_MS } from "./wait.mjs";

/** The token of these sidecars. */
export const TOKEN = "token-of-the-editor-tests";

/** Starts one. */
export async function killable() {
  const data = mkdtempSync(join(tmpdir(), "redflow-beside-"));
  let [child, listen, log] = [null, "127.0.0.1:0", ""];
  const come = async () => {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^REDFLOW_|_API_KEY$/.test(name)));
    const args = ["serve", "--listen", listen, "--data", data];
    const options = { cwd: data, env: { ...env, REDFLOW_TOKEN: TOKEN, NO_COLOR: "1" } };
    child = spawn(binary(), args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
    const begun = log.length;
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`redflow serve does not listen:\n${log}`)), PATIENCE_MS);
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`redflow serve left with ${code}:\n${log}`)));
      child.stderr.setEncoding("utf8").on("data", (text) => {
        log += text;
        const found = /listening on http:\/\/(127\.0\.0\.1:\d+)/.exec(log.slice(begun));
        if (found) {
          listen = found[1];
          clearTimeout(late);
          resolve();
        }
      });
    });
  };
  const kill = async () => {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    child = null;
  };
  await come();
  return {
    url: () => `http://${listen}`,
    come,
    kill,
    stop: async () => {
      if (child) {
        await kill();
      }
      rmSync(data, { recursive: true, force: true });
    },
    /** What somebody with the token is told. None of it goes through the browser. */
    ask: async (path) => {
      const answer = await fetch(`http://${listen}${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
      return answer.json();
    },
    log: () => log,
  };
}
