// Runs `redflow serve`, which can be ended and started again with the same address.

import { spawn } from "node:child_process";
import { once } from "node:events";

import { binary } from "./sidecar.mjs";
import { TIMEOUT_MS } from "./wait.mjs";

/** The tests' environment without what sets a sidecar up, except the folder of a console that is being written. */
export const environment = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^REDFLOW_(?!CONSOLE$)|_API_KEY$/.test(name)));

/** Starts it with these arguments, and with the options of a process. */
export async function startServe(args, options = {}) {
  let [child, listen, log] = [null, "127.0.0.1:0", ""];
  const start = async () => {
    child = spawn(binary(), ["serve", "--listen", listen, ...args], { env: environment(), ...options, stdio: ["ignore", "ignore", "pipe"] });
    const begin = log.length;
    await new Promise((resolve, reject) => {
      const timeout = setTimeout(() => reject(new Error(`redflow serve does not listen:\n${log}`)), TIMEOUT_MS);
      child.on("error", reject);
      child.once("exit", (code) => reject(new Error(`redflow serve exited with ${code}:\n${log}`)));
      child.stderr.setEncoding("utf8").on("data", (text) => {
        log += text;
        const found = /listening on http:\/\/(127\.0\.0\.1:\d+)/.exec(log.slice(begin));
        if (found) {
          listen = found[1];
          clearTimeout(timeout);
          resolve();
        }
      });
    });
  };
  /** Ends it, if it runs. */
  const end = async (signal) => {
    if (child !== null) {
      const exited = once(child, "exit");
      child.kill(signal);
      await exited;
      child = null;
    }
  };
  await start();
  return { url: () => `http://${listen}`, log: () => log, start, kill: () => end("SIGKILL"), stop: () => end("SIGTERM") };
}
