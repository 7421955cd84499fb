// A sidecar that is started here: with a stand-in for the binary that does what each test needs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { Managed } from "../dist/managed.js";

const TIMING = { backoffMs: 1, backoffMaxMs: 10, wellMs: 60_000, stopMs: 200 };

/** A managed sidecar whose binary runs a script; `until` waits for something it tells. */
function managed(t, script, binary) {
  const folder = mkdtempSync(join(tmpdir(), "redflow-managed-"));
  const file = join(folder, "redflow");
  writeFileSync(file, `#!${process.execPath}\n${script}\n`);
  chmodSync(file, 0o755);
  const told = [];
  const waiting = new Set();
  const tell = (what) => (value) => {
    told.push([what, value]);
    waiting.forEach((look) => look());
  };
  const listener = Object.fromEntries(["up", "down", "missing", "line"].map((what) => [what, tell(what)]));
  const sidecar = new Managed({ binary: binary ?? file, dataDir: join(folder, "data") }, listener, TIMING);
  t.after(async () => {
    await sidecar.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const until = (what, count = 1) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`never: ${what} ${JSON.stringify(told.slice(-5))}`)), 20_000);
      const look = () => {
        const found = told.filter(([kind]) => kind === what);
        if (found.length >= count) {
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found[count - 1][1]);
        }
      };
      waiting.add(look);
      look();
    });
  return { sidecar, until, told, folder };
}

const LISTENS = 'console.error("redflow 0.1.0 listening on http://127.0.0.1:4567 (no flow yet)");';
const STAYS = "setInterval(() => {}, 1e6);";

test("it is started as the sidecar wants it, and says where it listens", async (t) => {
  const note = 'require("fs").writeFileSync(__dirname + "/note", JSON.stringify(process.argv.slice(2)));';
  const { sidecar, until, folder } = managed(t, `${note}${LISTENS}console.error(process.env.REDFLOW_TOKEN);${STAYS}`);
  await sidecar.start();
  const { url, token } = await until("up");
  assert.equal(url, "http://127.0.0.1:4567");
  assert.match(token, /^[0-9a-f]{64}$/);
  const args = JSON.parse(readFileSync(join(folder, "note"), "utf8"));
  assert.deepEqual(args, ["serve", "--listen", "127.0.0.1:0", "--data", join(folder, "data"), "--stop-with-stdin"]);
  assert.equal(await until("line", 2), "…", "the token is in no log");
});

test("it is started again when it ends, each time with another token", async (t) => {
  const { sidecar, until, told } = managed(t, `${LISTENS}console.error("error[DATA_FULL]: no room");console.error("   = help: more");process.exitCode = 3;`);
  await sidecar.start();
  const [first, second] = [await until("up", 1), await until("up", 2)];
  assert.notEqual(first.token, second.token);
  assert.equal(await until("down"), "it ended with code 3: error[DATA_FULL]: no room");
  await sidecar.stop();
  const count = told.length;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(told.length, count);
});

test("the last lines are kept, each cut", async (t) => {
  const talks = 'for (let i = 0; i < 300; i++) console.error("line " + i + "x".repeat(5000));';
  const { sidecar, until } = managed(t, `${talks}${STAYS}`);
  await sidecar.start();
  await until("line", 300);
  const lines = sidecar.log();
  assert.equal(lines.length, 200);
  assert.match(lines[0], /^line 100x/);
  assert.ok(lines.every((line) => line.length === 2_000));
});

test("a line without an end is not kept whole", async (t) => {
  const { sidecar, until } = managed(t, `process.stderr.write("y".repeat(3_000_000) + "\\nend\\n");${STAYS}`);
  await sidecar.start();
  await until("line", 2);
  assert.deepEqual(sidecar.log().map((line) => line.length), [2_000, 3]);
});

test("no binary, or one that may not be run, is said in words", async (t) => {
  const missing = managed(t, "", "/nowhere/redflow");
  await missing.sidecar.start();
  assert.match(await missing.until("missing"), /there is no program \/nowhere\/redflow/);
  await missing.until("missing", 2);
  const odd = managed(t, "", "red\0flow");
  await odd.sidecar.start();
  assert.match(await odd.until("missing"), /could not be started/);
  const folder = managed(t, "", tmpdir());
  await folder.sidecar.start();
  assert.match(await folder.until("missing"), /may not be run/);
});

test("who does not stop is killed", async (t) => {
  const { sidecar, until } = managed(t, `process.on("SIGTERM", () => {});${LISTENS}${STAYS}`);
  await sidecar.start();
  await until("up");
  await sidecar.stop();
});

test("its stdin ends with the process that started it, however that ends", async (t) => {
  // If its stdin had ended at once it would be gone before it says that it listens.
  const ends = 'process.stdin.on("end", () => { require("fs").writeFileSync(__dirname + "/ended", ""); process.exit(); });';
  const { folder } = managed(t, `${ends}process.stdin.resume();setTimeout(() => { ${LISTENS} }, 300);`);
  const built = fileURLToPath(new URL("../dist/managed.js", import.meta.url));
  const script = `
    const { Managed } = require(${JSON.stringify(built)});
    const nothing = () => {};
    const listener = { up: () => console.log("up"), down: nothing, missing: nothing, line: nothing };
    new Managed({ binary: ${JSON.stringify(join(folder, "redflow"))}, dataDir: "d" }, listener).start();`;
  const parent = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => parent.stdout.once("data", resolve));
  parent.kill("SIGKILL");
  const end = Date.now() + 20_000;
  while (!existsSync(join(folder, "ended"))) {
    assert.ok(Date.now() < end, "it runs on");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
});
