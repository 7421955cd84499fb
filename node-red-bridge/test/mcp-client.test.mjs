// The dialog of an mcp-client: servers as suggestions, and the tools of the chosen one with a box each.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Window } from "happy-dom";
import { translator } from "./kit/texts.mjs";
import { until } from "./kit/until.mjs";

const { window } = new Window();
const { document } = window;
Object.assign(globalThis, { window, document, Node: window.Node, HTMLInputElement: window.HTMLInputElement, HTMLTextAreaElement: window.HTMLTextAreaElement });
globalThis.RED = { _: translator("en-US") };

/** The parts of jQuery that the dialog uses. `answers` are the responses of Node-RED, by address. */
let answers = {};
const asked = [];
globalThis.$ = Object.assign(
  (field) => {
    const wrapped = {
      on: (names, act) => (names.split(" ").forEach((name) => field.addEventListener(name, act)), wrapped),
      val: (value) => ((field.value = value), wrapped),
      trigger: (name) => (field.dispatchEvent(new window.Event(name)), wrapped),
    };
    return wrapped;
  },
  {
    ajax: ({ url }) => {
      asked.push(url);
      const answer = answers[url] ?? { status: 404, responseJSON: { code: "NOT_FOUND", message: "" } };
      const isFailure = answer.status !== undefined;
      const callIf = (isMeant) => (act) => {
        if (isMeant) {
          setTimeout(() => act(answer), 0);
        }
        return request;
      };
      const request = { done: callIf(!isFailure), fail: callIf(isFailure) };
      return request;
    },
  },
);
const { prepareMcp } = await import("../editor-build/editor/mcp-client.mjs");
const { effectOf, keyOf, matchesName, patternsOf, tickOf, withTick } = await import("../editor-build/editor/mcp-tools.mjs");

const CONNECTED = { "redflow/runtimes": { module: "1", runtimes: [{ id: "rt", state: { is: "connected", version: "1" } }, { id: "far", state: { is: "connecting" } }] } };
const SERVERS = { "redflow/runtimes/rt/mcp": { servers: [{ name: "notes", state: "idle", reason: "" }, { name: "files", state: "ready", reason: "" }] } };
const SAME = { read: "read", idempotent: "idempotent" };
const tool = (name, effect = "at_most_once", state = "ready", tightened = SAME) => ({ name, effect, tightened, state, description: `<b>${name}</b>` });
const FILES = { "redflow/runtimes/rt/mcp/files": { name: "files", state: "ready", reason: "", tools: [tool("read_file", "read"), tool("write_file"), tool("list", "idempotent", "changed")] } };

/** Opens the dialog with these values. */
async function open(values, responses) {
  answers = responses;
  asked.length = 0;
  const field = (tag, name) => {
    const made = document.createElement(tag);
    made.id = `node-input-${name}`;
    made.value = values[name] ?? "";
    return made;
  };
  document.body.replaceChildren(
    ...["server", "url", "include", "exclude"].map((name) => field("input", name)),
    field("textarea", "redflow-effects"),
    ...["redflow-mcpState", "redflow-mcpTools", "redflow-mcpAccess"].map((name) => field("div", name)),
  );
  await prepareMcp();
  const part = (name) => document.getElementById(`node-input-${name}`);
  const change = (name, value) => {
    part(name).value = value;
    part(name).dispatchEvent(new window.Event("change"));
  };
  const boxes = () => [...part("redflow-mcpTools").querySelectorAll("input")];
  return { part, change, boxes, ticks: () => boxes().map(({ checked, disabled }) => `${checked ? "x" : "-"}${disabled ? "!" : ""}`).join(" "), state: () => part("redflow-mcpState").textContent };
}

test("names and patterns name tools as the sidecar reads them", () => {
  const rows = [["read", "read", true], ["read", "reads", false], ["read_*", "read_file", true], ["read_*", "read_", true], ["*", "x", true], ["*_file", "read_file", true], ["r*_f*e", "read_file", true], ["r*f*f*e", "read_file", false], ["ab*ba", "aba", false], ["a.b", "axb", false]];
  for (const [pattern, name, expected] of rows) {
    assert.equal(matchesName(pattern, name), expected, `${pattern} ${name}`);
  }
  assert.deepEqual([patternsOf(" a, b ,,"), patternsOf(["a ", 5, ""]), patternsOf(undefined)], [["a", "b"], ["a"], []]);
});

test("an empty field means all tools, and the last name cannot be removed by its box", () => {
  assert.deepEqual(tickOf("a", [], []), { isTicked: true, isFixed: false });
  assert.deepEqual(tickOf("a", ["b"], []), { isTicked: false, isFixed: false });
  assert.deepEqual(tickOf("a", ["a"], []), { isTicked: true, isFixed: true });
  assert.deepEqual(tickOf("a", ["a", "b"], []), { isTicked: true, isFixed: false });
  assert.deepEqual(tickOf("a", ["*"], []), { isTicked: true, isFixed: true });
  assert.deepEqual(tickOf("a", [], ["a*"]), { isTicked: false, isFixed: true });
  assert.deepEqual(withTick([], "a", false, ["a", "b", "c"]), ["b", "c"]);
  assert.deepEqual(withTick(["b"], "a", true, ["a", "b"]), ["b", "a"]);
  assert.deepEqual(withTick(["b", "x_*"], "b", false, ["a", "b"]), ["x_*"]);
});

test("the classes of names and patterns are those of the sidecar", () => {
  const cases = JSON.parse(readFileSync(new URL("../../runtime/mcp/tests/effects.json", import.meta.url), "utf8"));
  for (const { effects, classes } of cases) {
    for (const [name, expected] of Object.entries(classes)) {
      assert.equal(effectOf(effects, name) ?? null, expected, `${name} ${JSON.stringify(effects)}`);
    }
  }
  assert.deepEqual([effectOf({}, "a"), effectOf("x", "a"), effectOf(["read"], "0"), effectOf({ a: 5 }, "a")], [undefined, undefined, undefined, undefined]);
});

test("the servers of connected sidecars are offered, and the tools of the chosen one have boxes", async () => {
  const { part, change, boxes, ticks, state } = await open({ server: "files" }, { ...CONNECTED, ...SERVERS, ...FILES });
  const list = document.getElementById(part("server").getAttribute("list"));
  assert.deepEqual([...list.children].map(({ value }) => value), ["files", "notes"]);
  assert.equal(state(), "The server is connected.");
  const rows = [...part("redflow-mcpTools").querySelectorAll("li")].map((row) => row.textContent);
  assert.deepEqual(rows, [
    "read_fileChanges nothing: may be repeated<b>read_file</b>",
    "write_fileMust never happen twice<b>write_file</b>",
    "listMay be repeated with the same key<b>list</b> (changed)",
  ]);
  assert.equal(part("redflow-mcpTools").querySelector("b"), null);
  assert.equal(ticks(), "x x x");
  boxes()[1].checked = false;
  boxes()[1].dispatchEvent(new window.Event("change"));
  assert.deepEqual([part("include").value, ticks()], ["read_file, list", "x - x"]);
  boxes()[2].checked = false;
  boxes()[2].dispatchEvent(new window.Event("change"));
  assert.deepEqual([part("include").value, ticks()], ["read_file", "x! - -"]);
  change("include", "*_file");
  assert.equal(ticks(), "x! x! -");
  change("exclude", "write_*");
  assert.equal(ticks(), "x! -! -");
  change("redflow-effects", '{"write_*": "idempotent"}');
  assert.match(part("redflow-mcpTools").querySelectorAll("li")[1].textContent, /May be repeated with the same key/);
  // Another server replaces the list, and adds no handlers to the other fields.
  let added = 0;
  for (const name of ["include", "exclude", "redflow-effects"]) {
    part(name).addEventListener = () => (added += 1);
  }
  part("redflow-mcpTools").replaceChildren();
  change("server", "files");
  await until("the same list", () => boxes().length === 3);
  assert.deepEqual([added, ticks()], [0, "x! -! -"]);
  change("server", "gone");
  await until("unknown", () => state().startsWith("The sidecar has no MCP server with this name."));
  assert.equal(boxes().length, 0);
  change("server", "");
  assert.equal(state(), "Choose a server of the sidecar, or write a name.");
});

test("what is wrong is said in plain words, and the fields stay usable", async () => {
  const offline = { "redflow/runtimes": { module: "1", runtimes: [] } };
  const none = "No connected sidecar answers. Write the names of the server and of its tools yourself.";
  assert.equal((await open({ server: "files" }, offline)).state(), none);
  assert.equal((await open({ server: "files" }, {})).state(), none);
  const failed = { ...CONNECTED, "redflow/runtimes/rt/mcp/files": { status: 502, responseJSON: { code: "MCP_FAILED", message: "x" } } };
  assert.equal((await open({ server: "files" }, failed)).state(), "The sidecar cannot show this server now. Open the dialog again later.");
  const login = { ...CONNECTED, "redflow/runtimes/rt/mcp/files": { name: "files", state: "login_needed", reason: "<i>401</i>", tools: [] } };
  const { part, state } = await open({ server: "files" }, login);
  assert.equal(state(), "A person must sign in: redflow mcp login NAME, or the page MCP of the console.<i>401</i>");
  assert.equal(part("redflow-mcpState").querySelector("i"), null);
  const deployed = await open({ server: "tracker", url: "https://x.example/mcp" }, CONNECTED);
  assert.match(deployed.state(), /^Deploy first/);
});

test("only an address needs an authentication", async () => {
  const { part, change } = await open({ server: "" }, CONNECTED);
  assert.equal(part("redflow-mcpAccess").hidden, true);
  change("url", "https://x.example/mcp");
  assert.equal(part("redflow-mcpAccess").hidden, false);
  change("url", " ");
  assert.equal(part("redflow-mcpAccess").hidden, true);
});

test("a class of the field is as strict as what the server says about the tool", async () => {
  const tools = [tool("drop", "at_most_once", "ready", { read: "at_most_once", idempotent: "at_most_once" }), tool("look")];
  const { part, change } = await open({ server: "files" }, { ...CONNECTED, ...SERVERS, "redflow/runtimes/rt/mcp/files": { name: "files", state: "ready", reason: "", tools } });
  const classes = () => [...part("redflow-mcpTools").querySelectorAll(".redflow-agent-tool-type")].map(({ textContent }) => textContent);
  const [never, nothing, key] = ["Must never happen twice", "Changes nothing: may be repeated", "May be repeated with the same key"];
  assert.deepEqual(classes(), [never, never]);
  change("redflow-effects", JSON.stringify({ "*": "at_most_once", "?": "read", "l*": "read", drop: "read" }));
  assert.deepEqual(classes(), [never, nothing]);
  change("redflow-effects", JSON.stringify({ "*": "idempotent" }));
  assert.deepEqual(classes(), [never, key]);
});

test("the server of a node is found by its address", async () => {
  const rows = [
    ["docs", "", "docs"],
    ["", "https://a.example/mcp", ""],
    ["docs", "no address", "docs"],
    ["docs", "https://A.example", "docs@a.example"],
    ["docs", "https://a.example/", "docs@a.example"],
    ["docs", "https://a.example:443/v1/mcp?key=x#y", "docs@a.example/v1/mcp"],
    ["docs", "http://a.example:8443/v1/mcp", "docs@a.example:8443/v1/mcp"],
    ["docs", "http://[::1]:3001/mcp", "docs@[::1]:3001/mcp"],
    ["docs", `https://a.example/${"x".repeat(200)}`, "docs"],
  ];
  for (const [name, address, expected] of rows) {
    assert.equal(keyOf(name, address), expected, address);
  }
  const path = "redflow/runtimes/rt/mcp/docs%40a.example%2Fv1";
  const { change, state } = await open({ server: "docs", url: "https://a.example/v1" }, { ...CONNECTED, ...SERVERS, [path]: { name: "docs", state: "ready", reason: "", tools: [] } });
  assert.equal(state(), "The server is connected.");
  change("url", "https://a.example/v2");
  await until("the other address", () => asked.includes("redflow/runtimes/rt/mcp/docs%40a.example%2Fv2"));
});
