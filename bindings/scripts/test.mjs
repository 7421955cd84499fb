// Runs the tests. Node.js 20 and 21 have a WebSocket of their own only behind a flag, which this sets.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const bindings = fileURLToPath(new URL("..", import.meta.url));
const files = readdirSync(`${bindings}/test`).filter((name) => name.endsWith(".test.mjs"));
const major = Number(process.versions.node.split(".")[0]);
const flags = major >= 20 && major < 22 ? ["--experimental-websocket", "--no-warnings"] : [];
const run = [...flags, "--test", ...files.map((name) => `test/${name}`)];
process.exitCode = spawnSync(process.execPath, run, { cwd: bindings, stdio: "inherit" }).status ?? 1;
