// Our client, as the conformance suite starts it: `node client.mjs URL`.
//
// It writes the address into the manifest of a new data directory. Then it does what a person does with `redflow mcp`:
// signs in if the scenario needs it, lists the tools, and calls them. REDFLOW_BIN names the program.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

const url = process.argv[2];
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

// The time limit of a command. Scenarios have servers that refuse everything.
const LIMIT_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "redflow-conformance-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const environment = { ...process.env, REDFLOW_DATA: folder, NO_COLOR: "1" };
// The suite listens at ports that only it knows: its server, and its issuers of tokens.
environment.REDFLOW_EGRESS_PRIVATE = listeningPorts().map((port) => `localhost:${port}`).join(",");

const server = { url };
if (scenario.startsWith("auth/")) {
  server.auth = { type: "oauth" };
  // The suite publishes no such document. It only looks at the name that the client gives itself.
  if (scenario === "auth/basic-cimd") server.auth.clientId = "https://conformance-test.local/client-metadata.json";
  if (scenario.startsWith("auth/client-credentials")) server.auth.grant = "client_credentials";
  if (context.client_id) server.auth.clientId = context.client_id;
  if (context.client_secret) {
    server.auth.secretEnv = "CONFORMANCE_SECRET";
    environment.CONFORMANCE_SECRET = context.client_secret;
  }
}
writeFileSync(join(folder, "tools.json"), JSON.stringify({ mcp: { peer: server } }));

// A sidecar knows which scopes the server has asked for. A command of its own forgets it when it ends.
const asksForMore = scenario === "auth/scope-step-up";
if (asksForMore) await serve();

if (scenario.startsWith("auth/") && server.auth.grant === undefined) await login();
if (scenario === "auth/authorization-server-migration") {
  // The first request changes the issuer. Then our client demands that a person signs out and in again.
  await redflow(["mcp", "show", "peer", "--json"]);
  await redflow(["mcp", "logout", "peer"]);
  await login();
  process.exitCode = 0;
}
await callTools();
if (asksForMore) {
  // The refusal names the scope that is missing, so a person signs in again.
  await login();
  await callTools();
  process.exitCode = 0;
}

// Lists the tools and calls each.
async function callTools() {
  let { tools } = JSON.parse(await redflow(["mcp", "show", "peer", "--json"]));
  // A sidecar connects by itself after a sign-in, and `show` does not wait for it.
  for (let tries = 0; asksForMore && tools.length === 0 && tries < 50; tries += 1) {
    await wait(100);
    ({ tools } = JSON.parse(await redflow(["mcp", "show", "peer", "--json"])));
  }
  const calls = context.toolCalls ?? tools.map(({ name, inputSchema }) => ({ name, arguments: sample(inputSchema) }));
  if (scenario === "json-schema-2020-12-preservation") {
    // The suite compares the schema of one tool as our client shows it.
    const { inputSchema } = tools.find(({ name }) => name === "json_schema_2020_12_tool") ?? {};
    for (const call of calls) if ("schema" in call.arguments) call.arguments.schema = inputSchema;
  }
  for (const call of calls) {
    await redflow(["mcp", "call", "peer", call.name, JSON.stringify(call.arguments), "--json"]);
  }
}

// Starts a sidecar for the commands. It ends with this process.
async function serve() {
  const sidecar = spawn(process.env.REDFLOW_BIN, ["serve", "--listen", "127.0.0.1:0"], {
    env: environment,
    stdio: ["ignore", "ignore", "inherit"],
  });
  process.prependListener("exit", () => sidecar.kill("SIGKILL"));
  sidecar.unref();
  const address = () => (existsSync(join(folder, "address")) ? readFileSync(join(folder, "address"), "utf8").trim() : "");
  for (const end = Date.now() + LIMIT_MS; !address() && Date.now() < end; ) await wait(50);
  environment.REDFLOW_URL = `http://${address()}`;
}

// Signs in as a person does who agrees to everything.
async function login() {
  await redflow(["mcp", "login", "peer"], async (line, child) => {
    const address = line.match(/^https?:\/\/\S+/)?.[0];
    if (!address) return;
    const agreed = await fetch(address, { redirect: "manual" });
    const callback = agreed.headers.get("location");
    if (callback) await fetch(callback);
    else child.kill("SIGKILL");
  });
}

// An input that follows a schema, as far as the tools of the suite need it.
function sample(schema) {
  const value = ({ type, enum: choices }) =>
    choices?.[0] ?? { string: "text", number: 5, integer: 5, boolean: true, array: [], object: {} }[type] ?? "text";
  const wanted = Object.entries(schema?.properties ?? {});
  return Object.fromEntries(wanted.map(([name, property]) => [name, value(property)]));
}

// Runs `redflow` and gives what it printed. A failure is no error here: the suite judges what its server saw.
function redflow(args, onLine = () => {}) {
  return new Promise((resolve) => {
    const child = spawn(process.env.REDFLOW_BIN, args, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    let [stdout, rest] = ["", ""];
    const lines = (data) => {
      rest += data;
      for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
        onLine(rest.slice(0, end), child);
        rest = rest.slice(end + 1);
      }
    };
    child.stdout.on("data", (data) => {
      stdout += data;
      lines(data);
    });
    child.stderr.on("data", (data) => {
      process.stderr.write(data);
      lines(data);
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (code !== 0) process.exitCode = 1;
      resolve(code === 0 ? stdout : '{"tools": []}');
    });
  });
}

// The ports of this machine at which a program listens.
function listeningPorts() {
  const rows = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => readFileSync(file, "utf8").split("\n").slice(1));
  const listening = rows.map((row) => row.trim().split(/\s+/)).filter((row) => row[3] === "0A");
  return [...new Set(listening.map((row) => Number.parseInt(row[1].split(":").at(-1), 16)))];
}
