// The first run, with the commands of `cargo xtask demo`: its address shows the run, and one click proves it.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { binary } from "../kit/sidecar.mjs";
import { environment } from "../kit/serve.mjs";

const FLOW = fileURLToPath(new URL("../../../examples/calculator-loop.json", import.meta.url));

export async function demo(t, browser) {
  const data = mkdtempSync(join(tmpdir(), "redflow-demo-"));
  copyFileSync(FLOW, join(data, "flows.json"));
  const env = environment();
  const sidecar = spawn(binary(), ["serve", "--data", data, "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "ignore", "pipe"] });
  t.after(async () => {
    const exited = once(sidecar, "exit");
    sidecar.kill("SIGKILL");
    await exited;
    rmSync(data, { recursive: true, force: true });
  });
  let log = "";
  const url = await new Promise((resolve, reject) => {
    sidecar.once("exit", (code) => reject(new Error(`redflow serve exited with ${code}:\n${log}`)));
    sidecar.stderr.setEncoding("utf8").on("data", (text) => {
      log += text;
      const [, found] = /listening on (http:\S+)/.exec(log) ?? [];
      if (found !== undefined) {
        resolve(found);
      }
    });
  });
  const redflow = (...args) => execFileSync(binary(), [...args, "--data", data, "--url", url], { env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  redflow("run");
  const { runId } = JSON.parse(redflow("runs", "--json", "--limit", "1").split("\n")[0]);
  const signIn = redflow("token", "--browser");
  assert.match(signIn, /\/sign-in\?code=[\w-]+$/);

  const context = await browser.newContext({ locale: "en-US" });
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`${signIn}#/runs/${runId}`);
  const main = page.getByRole("main");
  await main.getByRole("tree").waitFor();
  assert.ok(page.url().endsWith(`/#/runs/${runId}`), page.url());
  for (const card of ["Ask again", "Break a wire", "Use it in Node-RED"]) {
    await main.getByRole("article").filter({ hasText: card }).waitFor();
  }
  await main.getByRole("button", { name: "Replay" }).click();
  await main.getByText(/proved equal/i).waitFor();
}
