// Starts a real Node-RED with the packed palette module, which `cargo xtask node-red` prepares, in its own user directory.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { eventually } from "./wait.mjs";

const PREPARED = fileURLToPath(new URL("../../node_red/", import.meta.url));
const PALETTE = join(PREPARED, "dist", "user", "node_modules");
const SOURCES = fileURLToPath(new URL("../../../node-red-bridge/", import.meta.url));
const ADVICE = "run `cargo xtask node-red`, which prepares it";

/** The major versions of Node-RED, by their folders. */
export const LINES = ["4.1", "5"];

/** The oldest Node.js that runs the palette module. */
const OLDEST_NODE = 20;

/** The log lines that a failing test shows. */
const MAX_LOG_LINES = 60;

function existing(path) {
  assert.ok(existsSync(path), `${path} does not exist: ${ADVICE}`);
  return path;
}

/** The newest modification time below a path. */
function newest(path) {
  const found = statSync(path);
  return found.isDirectory() ? Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name)))) : found.mtimeMs;
}

/** The modules of a user directory with the packed palette module. Checks its age by the one file that npm dates itself. */
function palette() {
  const installed = existing(join(PALETTE, "@redflow", "node-red-bridge", "package.json"));
  const changed = Math.max(...["src", "examples", "scripts", "package.json"].map((name) => newest(join(SOURCES, name))));
  assert.ok(changed <= newest(join(PALETTE, ".package-lock.json")), `${installed} is older than its sources: ${ADVICE}`);
  return PALETTE;
}

/** The Node.js for a version of Node-RED: version 4.1 runs on the system's. */
function nodeOf(line) {
  const system = Number(process.versions.node.split(".")[0]);
  const newer = join(PREPARED, "lines", "5", "node_modules", ".bin", "node");
  return line === "4.1" && system >= OLDEST_NODE ? process.execPath : existing(newer);
}

/** Loopback only, and no requests to other servers. */
const SETTINGS = `module.exports = {
  uiHost: "127.0.0.1",
  uiPort: Number(process.env.TEST_PORT),
  flowFile: "flows.json",
  credentialSecret: "of the tests",
  lang: "en-US",
  telemetry: { enabled: false, updateNotification: false },
  editorTheme: { palette: { catalogues: [] }, tours: false, codeEditor: { lib: "ace" } },
  externalModules: { palette: { allowInstall: false }, modules: { allowInstall: false } },
  functionExternalModules: false,
  logging: { console: { level: "info", metrics: false, audit: false } },
};
`;

/** Fills a user directory. */
function prepareUserDirectory(user) {
  const modules = join(user, "node_modules");
  mkdirSync(modules);
  const installed = palette();
  for (const folder of ["@redflow", "ws"]) {
    symlinkSync(join(installed, folder), join(modules, folder));
  }
  const dependencies = { "@redflow/node-red-bridge": "*" };
  writeFileSync(join(user, "package.json"), JSON.stringify({ name: "user", private: true, dependencies }));
  writeFileSync(join(user, "flows.json"), "[]");
  writeFileSync(join(user, "settings.js"), SETTINGS);
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** The environment without variables that would change its behaviour. */
function environment(more) {
  const excluded = /^(REDFLOW_|NODE_RED_|NODE_TEST_|NODE_OPTIONS|npm_)|_API_KEY$/;
  const allowed = Object.entries(process.env).filter(([name]) => !excluded.test(name));
  return { ...Object.fromEntries(allowed), LANG: "en_US.UTF-8", NO_COLOR: "1", ...more };
}

/** Starts Node-RED of a version. `env` are further environment variables. */
export async function nodeRed(line, env = {}) {
  const user = mkdtempSync(join(tmpdir(), "redflow-editor-"));
  prepareUserDirectory(user);
  const port = await freePort();
  const program = existing(join(PREPARED, "lines", line, "node_modules", "node-red", "red.js"));
  const args = [program, "--userDir", user, "--settings", join(user, "settings.js")];
  const child = spawn(nodeOf(line), args, {
    cwd: user,
    env: environment({ ...env, TEST_PORT: String(port) }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => (log += text));
  }
  const exited = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  const request = async (path, body, headers = {}) => {
    const allHeaders = { "node-red-api-version": "v2", accept: "application/json", ...headers };
    const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(url + path, { headers: { ...allHeaders, "content-type": "application/json" }, ...options });
    const text = await response.text();
    assert.ok(response.ok, `${path}: ${response.status} ${text}`);
    return /^[[{]/.test(text) ? JSON.parse(text) : text;
  };
  const stop = async () => {
    // Node-RED also stops the sidecar that it has started.
    child.kill("SIGTERM");
    const killTimer = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(killTimer);
    rmSync(user, { recursive: true, force: true });
  };
  try {
    await eventually("Node-RED starts", async () => {
      assert.equal(child.exitCode, null, log);
      return log.includes("Started flows") && (await request("/flows/state")).state === "start";
    });
    // Its random tips would change the screenshots.
    await request("/settings/user", { editor: { view: { "view-show-tips": false } } });
  } catch (error) {
    await stop();
    throw new Error(`Node-RED ${line} does not start:\n${log}`, { cause: error });
  }
  return {
    line,
    url,
    request,
    stop,
    /** Deploys these flows instead of the present ones. */
    deploy: async (flows) => {
      const { rev } = await request("/flows");
      return request("/flows", { rev, flows }, { "node-red-deployment-type": "full" });
    },
    flows: async () => (await request("/flows")).flows,
    log: () => log.trimEnd().split("\n").slice(-MAX_LOG_LINES).join("\n"),
  };
}
