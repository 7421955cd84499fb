// Runs the tests that need no Node-RED.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const module = fileURLToPath(new URL("..", import.meta.url));
const files = readdirSync(`${module}/test`).filter((name) => name.endsWith(".test.mjs"));
const run = ["--test", ...files.map((name) => `test/${name}`)];
process.exitCode = spawnSync(process.execPath, run, { cwd: module, stdio: "inherit" }).status ?? 1;
