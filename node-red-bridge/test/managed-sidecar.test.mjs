// The managed sidecar, with a script in the place of the program.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { ManagedSidecar } from "../dist/managed-sidecar.js";

const TIMING = { backoffMs: 1, backoffMaxMs: 10, healthyMs: 60_000, stopMs: 200 };

/** A managed sidecar whose program is a script; `until` waits for an event of it. */
function managedSidecar(t, script, binary, allowPrivate = "") {
  const folder = mkdtempSync(join(tmpdir(), "redflow-managed-"));
  const file = join(folder, "redflow");
  writeFileSync(file, `#!${process.execPath}\n${script}\n`);
  chmodSync(file, 0o755);
  const events = [];
  const waiting = new Set();
  const record = (name) => (value) => {
    events.push([name, value]);
    waiting.forEach((check) => check());
  };
  const names = ["onListening", "onExit", "onUnavailable", "onLogLine"];
  const listener = Object.fromEntries(names.map((name) => [name, record(name)]));
  const sidecar = new ManagedSidecar({ binary: binary ?? file, dataDir: join(folder, "data"), allowPrivate }, listener, TIMING);
  t.after(async () => {
    await sidecar.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const until = (name, count = 1) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${name}, last ${JSON.stringify(events.slice(-5))}`)), 20_000);
      const check = () => {
        const found = events.filter(([event]) => event === name);
        if (found.length >= count) {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(found[count - 1][1]);
        }
      };
      waiting.add(check);
      check();
    });
  return { sidecar, until, events, folder };
}

const LISTENS = 'console.error("redflow 0.1.0 listening on http://127.0.0.1:4567 (no flow yet)");';
const STAYS = "setInterval(() => {}, 1e6);";

test("starts the program with its arguments and reports its address", async (t) => {
  const note = 'require("fs").writeFileSync(__dirname + "/note", JSON.stringify(process.argv.slice(2)));';
  const { sidecar, until, folder } = managedSidecar(t, `${note}${LISTENS}console.error(process.env.REDFLOW_TOKEN);${STAYS}`);
  await sidecar.start();
  const { url, token } = await until("onListening");
  assert.equal(url, "http://127.0.0.1:4567");
  assert.match(token, /^[0-9a-f]{64}$/);
  const args = JSON.parse(readFileSync(join(folder, "note"), "utf8"));
  assert.deepEqual(args, ["serve", "--listen", "127.0.0.1:0", "--data", join(folder, "data"), "--stop-with-stdin"]);
  assert.equal(await until("onLogLine", 2), "…", "the log does not contain the token");
});

test("allows each private host by an option of its own", async (t) => {
  const note = 'require("fs").writeFileSync(__dirname + "/note", JSON.stringify(process.argv.slice(2)));';
  const { sidecar, until, folder } = managedSidecar(t, `${note}${LISTENS}${STAYS}`, undefined, " nas.lan:8123,, [fd12::1]:80 ,--listen=0.0.0.0:1");
  await sidecar.start();
  await until("onListening");
  const args = JSON.parse(readFileSync(join(folder, "note"), "utf8"));
  const hosts = ["nas.lan:8123", "[fd12::1]:80", "--listen=0.0.0.0:1"].map((host) => `--allow-private=${host}`);
  assert.deepEqual(args.slice(6), hosts);
});

test("restarts the program after an exit with another token", async (t) => {
  const { sidecar, until, events } = managedSidecar(t, `${LISTENS}console.error("error[DATA_FULL]: no room");console.error("   = help: more");process.exitCode = 3;`);
  await sidecar.start();
  const [first, second] = [await until("onListening", 1), await until("onListening", 2)];
  assert.notEqual(first.token, second.token);
  const { text, phrase } = await until("onExit");
  assert.deepEqual([text, phrase.key], ["it ended with code 3: error[DATA_FULL]: no room", "offline_ended_error"]);
  await sidecar.stop();
  const count = events.length;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(events.length, count);
});

test("keeps the last log lines and cuts long ones", async (t) => {
  const logs = 'for (let i = 0; i < 300; i++) console.error("line " + i + "x".repeat(5000));';
  const { sidecar, until } = managedSidecar(t, `${logs}${STAYS}`);
  await sidecar.start();
  await until("onLogLine", 300);
  const lines = sidecar.log();
  assert.equal(lines.length, 200);
  assert.match(lines[0], /^line 100x/);
  assert.ok(lines.every((line) => line.length === 2_000));
});

test("cuts a very long line while reading it", async (t) => {
  const { sidecar, until } = managedSidecar(t, `process.stderr.write("y".repeat(3_000_000) + "\\nend\\n");${STAYS}`);
  await sidecar.start();
  await until("onLogLine", 2);
  assert.deepEqual(sidecar.log().map((line) => line.length), [2_000, 3]);
});

test("explains a missing program and one that is not executable", async (t) => {
  const missing = managedSidecar(t, "", "/nowhere/redflow");
  await missing.sidecar.start();
  assert.match((await missing.until("onUnavailable")).text, /there is no program \/nowhere\/redflow/);
  await missing.until("onUnavailable", 2);
  const invalid = managedSidecar(t, "", "red\0flow");
  await invalid.sidecar.start();
  assert.match((await invalid.until("onUnavailable")).text, /could not be started/);
  const folder = managedSidecar(t, "", tmpdir());
  await folder.sidecar.start();
  assert.match((await folder.until("onUnavailable")).text, /is not executable/);
});

test("kills a process that does not stop", async (t) => {
  const { sidecar, until } = managedSidecar(t, `process.on("SIGTERM", () => {});${LISTENS}${STAYS}`);
  await sidecar.start();
  await until("onListening");
  await sidecar.stop();
});

test("the stdin of the process closes when its parent is killed", async (t) => {
  // If the stdin closed at once, the process would exit before it listens.
  const ends = 'process.stdin.on("end", () => { require("fs").writeFileSync(__dirname + "/ended", ""); process.exit(); });';
  const { folder } = managedSidecar(t, `${ends}process.stdin.resume();setTimeout(() => { ${LISTENS} }, 300);`);
  const built = fileURLToPath(new URL("../dist/managed-sidecar.js", import.meta.url));
  const script = `
    const { ManagedSidecar } = require(${JSON.stringify(built)});
    const nothing = () => {};
    const others = { onExit: nothing, onUnavailable: nothing, onLogLine: nothing };
    const listener = { ...others, onListening: () => console.log("listening") };
    new ManagedSidecar({ binary: ${JSON.stringify(join(folder, "redflow"))}, dataDir: "d", allowPrivate: "" }, listener).start();`;
  const parent = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => parent.stdout.once("data", resolve));
  parent.kill("SIGKILL");
  const end = Date.now() + 20_000;
  while (!existsSync(join(folder, "ended"))) {
    assert.ok(Date.now() < end, "the process still runs");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
});
