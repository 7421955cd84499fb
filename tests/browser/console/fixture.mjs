// The shared fixture of the console's tests: a sidecar with a flow and some runs, and a browser that is signed in.

import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { environment, startServe } from "../kit/serve.mjs";
import { binary } from "../kit/sidecar.mjs";
import { eventually } from "../kit/wait.mjs";
import { nodes } from "./flow.mjs";

/** Prices, so that runs have a cost. */
const CONFIG = '[prices."*"]\ninput = 1000\noutput = 10000\n';

/** A tool that every call is refused of, and a limit that no test reaches. */
const MANIFEST = {
  tools: [
    { id: "weather.current", kind: "http", description: "The weather now", inputSchema: { type: "object" }, url: "https://weather.example" },
  ],
  policy: [
    { limit: ["*"], agents: ["Sums", "Prose"], per: "agent", rate: "1000/s", concurrent: 8 },
    { deny: ["weather.*"] },
  ],
};

/** A server that breaks every connection off, so that the outcome of a call is unknown. */
async function brokenPost() {
  const server = createServer((request) => request.socket.destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

/** Starts a sidecar. `flowOf` gives its flow for the address of a server that breaks connections off. `more` is added to its manifest. */
export async function startConsole(flowOf = nodes, more = {}) {
  const post = await brokenPost();
  const folder = mkdtempSync(join(tmpdir(), "redflow-console-"));
  const [data, flows, config] = [join(folder, "data"), join(folder, "flows.json"), join(folder, "redflow.toml")];
  writeFileSync(flows, JSON.stringify(flowOf(post.url)));
  writeFileSync(config, CONFIG);
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "tools.json"), JSON.stringify({ ...MANIFEST, ...more }));
  const args = ["--config", config, "--data", data, "--flows", flows, "--allow-private", new URL(post.url).host];
  const { url, log, start, kill, stop } = await startServe(args);
  const cli = (...args) => execFileSync(binary(), [...args, "--data", data], { env: environment(), encoding: "utf8" }).trim();
  const token = cli("token");
  /** A request with a token, not through the browser. */
  const request = async (method, path, body, by = token) => {
    const authorization = `Bearer ${by}`;
    const content = body === undefined ? { headers: { authorization } } : { headers: { authorization, "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(url() + path, { method, ...content });
    const text = await response.text();
    return { status: response.status, json: text === "" ? undefined : JSON.parse(text) };
  };
  /** Adds a document to a knowledge base. */
  const addDocument = async (base, name, text, tag) => {
    const query = new URLSearchParams({ document: name, ...(tag === undefined ? {} : { tag }) });
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" };
    const response = await fetch(`${url()}/api/kb/${base}/documents?${query}`, { method: "POST", headers, body: text });
    if (!response.ok) {
      throw new Error(`${name} is not added: ${await response.text()}`);
    }
  };
  /** The ids of runs, newest first, as the sidecar lists them. */
  const allIds = async (query = "") => (await request("GET", `/api/runs?limit=1000${query}`)).json.runs.map(({ runId }) => runId);
  const ask = async (node, payload) => (await request("POST", "/api/runs", { node, payload, wait: node !== "letters" })).json.runs[0].runId;
  return {
    url,
    token,
    request,
    addDocument,
    ask,
    allIds,
    kill,
    start,
    log,
    data,
    /** The whole journal of a run. */
    journal: async (run) => (await fetch(`${url()}/api/runs/${run}/journal`, { headers: { authorization: `Bearer ${token}` } })).text(),
    /** What `redflow replay` prints for a run, and its exit code. */
    replay: (run) => {
      const { status, stdout, stderr } = spawnSync(binary(), ["replay", run, "--data", data], { env: environment(), encoding: "utf8" });
      return { status, text: `${stdout}${stderr}` };
    },
    /** A new token with these scopes. */
    tokenWith: async (name, ...scopes) => (await request("POST", "/api/tokens", { name, scopes })).json.token,
    /** The path of a link that signs a browser in. */
    signInPath: async () => (await request("POST", "/api/sign-in-codes")).json.path,
    /** Changes the first byte of a text, wherever the store has it, while no sidecar runs. */
    changeByte: async (text) => {
      // After a clean end, all is in this file.
      await stop();
      const file = join(data, "redflow.db");
      const bytes = readFileSync(file);
      let place = bytes.indexOf(text);
      if (place < 0) {
        throw new Error(`${text} is not in the file`);
      }
      // The journal has it, and so may pages that the store no longer uses.
      for (; place >= 0; place = bytes.indexOf(text, place + 1)) {
        bytes[place] += 1;
      }
      writeFileSync(file, bytes);
      await start();
    },
    /** Waits until a run has this status. */
    untilStatus: (run, status) =>
      eventually(`${run} is ${status}`, async () => (await request("GET", `/api/runs/${run}`)).json.summary?.status === status),
    stop: async () => {
      await kill();
      post.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
