// Starts the real sidecar (`redflow serve`) from the built binary.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { RedflowClient } from "@redflow/bindings";

/** A token with every scope. */
export const TOKEN = "rf_token-of-the-tests-0123456789";

const built = new URL(`../../../target/debug/redflow${process.platform === "win32" ? ".exe" : ""}`, import.meta.url);
const binary = process.env.REDFLOW_BIN || fileURLToPath(built);

/** Creates a temporary folder for one test. */
export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "redflow-bindings-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/**
 * Starts a sidecar in `path`, with the data of an earlier one. Writes `flow` first. `hosts` are further allowed host
 * names; `settings` are lines of `[server]`. Without `persistent` it stores nothing on the disk.
 */
export async function serve(t, { path = folder(t), flow, hosts = [], settings = [], persistent = false }) {
  if (!existsSync(binary)) {
    throw new Error(`${binary} does not exist: run \`cargo build\`, or name a redflow binary in REDFLOW_BIN`);
  }
  const flows = join(path, "flows.json");
  const config = join(path, "redflow.toml");
  if (flow) {
    writeFileSync(flows, JSON.stringify(flow));
  }
  const lines = [`hosts = ${JSON.stringify(hosts)}`, "rate_per_second = 10000", "rate_burst = 10000", ...settings];
  writeFileSync(config, `[server]\n${lines.join("\n")}\n`);
  const args = ["serve", "--listen", "127.0.0.1:0", "--flows", flows, ...(persistent ? [] : ["--ephemeral"])];
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("REDFLOW_"));
  const env = {
    ...Object.fromEntries(own),
    REDFLOW_CONFIG: config,
    REDFLOW_DATA: join(path, "data"),
    REDFLOW_TOKEN: TOKEN,
  };
  const child = spawn(binary, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  t.after(() => child.kill("SIGKILL"));
  let log = "";
  const url = await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`redflow serve exited with ${code}:\n${log}`)));
    child.stderr.setEncoding("utf8").on("data", (text) => {
      log += text;
      const found = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(log);
      if (found) {
        resolve(found[1]);
      }
    });
  });
  return {
    url,
    port: Number(new URL(url).port),
    path,
    client: new RedflowClient({ url, token: TOKEN }),
    /** The log so far. */
    log: () => log,
    /** Sends the signal and waits for the process to exit. */
    end: async (signal) => {
      child.kill(signal);
      await exited;
    },
  };
}

/** A flow with one agent, `agent`. Its model gives these replies, each after `delayMs`. */
export function flow(replies, delayMs = 0) {
  return [
    { id: "tab", type: "tab", label: "Test", disabled: false },
    {
      id: "ask",
      type: "inject",
      z: "tab",
      name: "Ask",
      props: [{ p: "payload" }],
      payload: "6 * 7?",
      payloadType: "str",
      wires: [["agent"]],
    },
    {
      id: "agent",
      type: "agent-core",
      z: "tab",
      name: "Desk",
      strategy: "react",
      maxIterations: 9,
      allowedTools: ["calculator"],
      stopConditions: [],
      debug: false,
      wires: [["model"], ["calc"], [], ["result"], []],
    },
    { id: "model", type: "scripted-model", z: "tab", name: "Model", replies, delayMs, wires: [["agent"]] },
    { id: "calc", type: "calculator-tool", z: "tab", name: "Calculator", wires: [["agent"]] },
    {
      id: "result",
      type: "debug",
      z: "tab",
      name: "Result",
      active: true,
      complete: "payload",
      targetType: "msg",
      wires: [],
    },
  ];
}

const sum = { action: "tool", tool: "calculator", input: { expression: "6 * 7" }, confidence: 0.5 };

/** A flow whose agent calls the calculator `count` times, then answers 42. */
export const sums = (count, delayMs) =>
  flow([...Array.from({ length: count }, () => sum), { action: "final", message: "42", confidence: 1 }], delayMs);
