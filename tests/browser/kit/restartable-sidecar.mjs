// A sidecar (`redflow serve`) for Node-RED that can be killed and started again with the same address and data.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { binary } from "./sidecar.mjs";
import { TIMEOUT_MS } from "./wait.mjs";

/** The price of the fake model, for a million tokens. */
const CONFIG = '[prices."gpt-4.1-mini*"]\ninput = 1000\noutput = 10000\n';

export const TOKEN = "token-of-the-editor-tests";

/** Starts a sidecar. */
export async function restartableSidecar() {
  const data = mkdtempSync(join(tmpdir(), "redflow-editor-sidecar-"));
  const config = join(data, "redflow.toml");
  writeFileSync(config, CONFIG);
  let [child, listen, log] = [null, "127.0.0.1:0", ""];
  const start = async () => {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^REDFLOW_|_API_KEY$/.test(name)));
    const args = ["serve", "--config", config, "--listen", listen, "--data", data];
    const options = { cwd: data, env: { ...env, REDFLOW_TOKEN: TOKEN, NO_COLOR: "1" } };
    child = spawn(binary(), args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
    const logStart = log.length;
    await new Promise((resolve, reject) => {
      const timeout = setTimeout(() => reject(new Error(`redflow serve does not listen:\n${log}`)), TIMEOUT_MS);
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`redflow serve exited with ${code}:\n${log}`)));
      child.stderr.setEncoding("utf8").on("data", (text) => {
        log += text;
        const found = /listening on http:\/\/(127\.0\.0\.1:\d+)/.exec(log.slice(logStart));
        if (found) {
          listen = found[1];
          clearTimeout(timeout);
          resolve();
        }
      });
    });
  };
  const kill = async () => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    child = null;
  };
  await start();
  return {
    url: () => `http://${listen}`,
    start,
    kill,
    stop: async () => {
      if (child) {
        await kill();
      }
      rmSync(data, { recursive: true, force: true });
    },
    /** Sends a GET request with the token, not through the browser. */
    get: async (path) => {
      const response = await fetch(`http://${listen}${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
      return response.json();
    },
    log: () => log,
  };
}
