// The MCP servers: the list with its states, a server with its tools, approvals, a sign-in, and texts of strangers.

import { Refusal, requests, until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import type { McpConfinement, McpServerDetail, McpServerState, McpServerSummary, McpToolInfo } from "@redflow/bindings";
import { FEATURES, HOSTILE, button, find, offer, open, sidecar, text } from "./console-page-kit.js";
import { shade, toasts } from "../src/app.js";

const server = (name: string, more: Partial<McpServerSummary> = {}): McpServerSummary => ({
  name,
  key: name,
  origin: "added",
  transport: "stdio",
  target: `npx -y files@1.2.3 ${HOSTILE}`,
  state: "ready",
  protocol: "2026-07-28",
  server: "files 1.2.3",
  tools: 14,
  changed: 0,
  since: 1_000,
  confinement: { landlock: 7, namespaces: true, gaps: [] },
  ...more,
});
/** The same tool without a property. */
const without = <Key extends "digest" | "pinned">(tool: McpToolInfo, key: Key): McpToolInfo => {
  const { [key]: _left, ...rest } = tool;
  return rest as McpToolInfo;
};
const tool = (name: string, more: Partial<McpToolInfo> = {}): McpToolInfo => ({
  name,
  id: `mcp.files.${name}`,
  description: `Reads. ${HOSTILE}`,
  effect: "read",
  tightened: { read: "read", idempotent: "idempotent" },
  included: true,
  state: "ready",
  inputSchema: { type: "object", title: HOSTILE },
  digest: `now-${name}`,
  pinned: `now-${name}`,
  ...more,
});
const detail = (summary: McpServerSummary, more: Partial<McpServerDetail> = {}): McpServerDetail => ({ summary, tools: [tool("read_file")], resources: [], prompts: [], ...more });
const DETAIL = "GET /api/mcp/files";
const PLACE = "#/mcp/files";
const facts = (root: HTMLElement): Record<string, string> =>
  Object.fromEntries([...root.querySelectorAll(".fact")].map((fact) => [fact.children[0]?.textContent ?? "", fact.children[1]?.textContent ?? ""]));
const rows = (root: HTMLElement): string[][] => [...root.querySelectorAll("tbody tr")].map((row) => [...row.children].map(({ textContent }) => textContent ?? ""));

test("the list says the state of each server in a word and a colour", async (t) => {
  const states: McpServerState[] = ["idle", "connecting", "ready", "away", "login_needed", "blocked"];
  const servers = states.map((state, index) => server(`s${index}`, { state, ...(index === 4 ? { transport: "http", changed: 3 } : {}) }));
  sidecar({ "GET /api/mcp": { servers } });
  const root = await open(t, "#/mcp");
  await until("the rows", () => root.querySelectorAll("tbody tr").length === 6);
  assert.deepEqual(rows(root).map(([, state]) => state), ["not used yet", "connecting", "connected", "offline", "sign-in needed", "blocked"]);
  assert.deepEqual(rows(root)[4], ["s4", "sign-in needed", "address", "2026-07-28", "14", "3"]);
  assert.deepEqual([...root.querySelectorAll("tbody td .badge")].map(({ className }) => className), [
    "badge status-",
    "badge status-running",
    "badge status-completed",
    "badge status-waiting",
    "badge status-waiting",
    "badge tool-changed",
    "badge status-failed",
  ]);
  assert.equal(root.querySelector("tbody a")?.getAttribute("href"), "#/mcp/s0");
});

test("without servers the page says how one is added; without the feature there is no page", async (t) => {
  sidecar();
  const root = await open(t, "#/mcp");
  await until("the advice", () => text(root).includes("There are no MCP servers yet.") && text(root).includes("redflow mcp add NAME"));
  sidecar({ "GET /api/mcp": { servers: [server("files")] } });
  const unknown = await open(t, "#/mcp/other");
  await until("unknown", () => text(unknown).includes("There is no MCP server with this name."));
  sidecar({ "GET /api/session": offer(FEATURES.filter((name) => name !== "mcp")) });
  const other = await open(t, "#/mcp");
  await until("no page", () => text(other).includes("There is no such page."));
  assert.equal(other.querySelector("nav a[href='#/mcp']"), null);
});

// SECURITY: mcp-console
test("a server has its tools with class and approval, its resources and its prompts; texts of strangers stay text", async (t) => {
  const one = server("files", { tools: 1 });
  const tools = [
    tool("read_file"),
    without(tool("write_file", { effect: "at_most_once", included: false, state: "blocked", reason: `The policy refuses it. ${HOSTILE}` }), "pinned"),
    without(tool("gone", { state: "away" }), "digest"),
  ];
  const resources = [{ uri: `file:///notes ${HOSTILE}`, name: "notes", description: "The notes" }];
  const prompts = [{ name: "review", description: "Reviews a text", needsArguments: false }, { name: "letter", needsArguments: true }];
  sidecar({ "GET /api/mcp": { servers: [one] }, [DETAIL]: detail(one, { tools, resources, prompts }) });
  const root = await open(t, PLACE);
  await until("the tools", () => root.querySelectorAll("tbody tr").length === 3);
  const { State, "Reached by": way, Protocol, Software, From, "Confined to its folders": confined, "To approve": changed } = facts(root);
  assert.deepEqual([State, way, Protocol, Software, From, confined, changed], ["connected", "program", "2026-07-28", "files 1.2.3", "redflow mcp add", "Yes (Landlock 7)", "0"]);
  assert.deepEqual(
    rows(root).map(([, ...rest]) => rest.map((cell) => cell.replace(/ <img.*/, ""))),
    [
      ["reads only", "ready", "approved"],
      ["at most once", "left out by include and excludeThe policy refuses it.", "not approved yet"],
      ["reads only", "offline", "The server no longer has it."],
    ],
  );
  assert.ok(text(root).includes("The notes") && text(root).includes("Reviews a text") && text(root).includes("letter (needs arguments)"), text(root));
  assert.ok(!text(root).includes("Approve all"));
  assert.equal(root.querySelector("img"), null);
  assert.ok(text(root).includes("⟨202E⟩"));
  assert.equal(root.querySelector("#mcp-changed"), null);
});

// SECURITY: mcp-gaps
test("what the system does not give to confine a program is said", async (t) => {
  const confinements: McpConfinement[] = [
    { landlock: 4, namespaces: false, gaps: ["no_modes", "signals"] },
    { namespaces: false, gaps: ["unconfined"] },
  ];
  const found: (string | undefined)[] = [];
  for (const confinement of confinements) {
    const one = server("files", { confinement });
    sidecar({ "GET /api/mcp": { servers: [one] }, [DETAIL]: detail(one, {}) });
    const root = await open(t, PLACE);
    await until("the facts", () => facts(root)["Confined to its folders"] !== undefined);
    found.push(facts(root)["Confined to its folders"]);
  }
  assert.match(found[0] ?? "", /^In part \(Landlock 4\).*installations by npx.*A program can end other processes/);
  assert.equal(found[1], "NoA program has the rights of the sidecar.");
});

// SECURITY: mcp-console
test("changed definitions are shown with their difference and approved with the digests that are shown", async (t) => {
  let changed = [tool("a", { pinned: "old", state: "changed", diff: `- Reads.\n+ Sends all mail. ${HOSTILE}\n  same` }), without(tool("b", { state: "changed" }), "pinned"), tool("c", { pinned: "old", state: "changed", diff: "- x\n+ y" })];
  const sent: unknown[] = [];
  const now = (): McpServerSummary => server("files", { changed: changed.length });
  sidecar({
    "GET /api/mcp": () => ({ servers: [now()] }),
    [DETAIL]: () => detail(now(), { tools: changed }),
    "POST /api/mcp/files/pin": (body: { tools: Record<string, string> }) => {
      sent.push(body);
      if (sent.length === 1) {
        return new Refusal(409, "TOOL_CONFLICT", "It has changed again.");
      }
      changed = changed.filter(({ name }) => !(name in body.tools));
      return detail(now(), { tools: changed });
    },
  });
  const root = await open(t, PLACE);
  await until("the definitions", () => root.querySelectorAll(".hits li").length === 3);
  const [first, second] = root.querySelectorAll<HTMLElement>(".hits li");
  assert.ok(first && second);
  assert.equal(find(first, "del").textContent, "- Reads.\n");
  assert.ok(find(first, "ins").textContent?.includes("Sends all mail. <img"));
  assert.equal(root.querySelector("img"), null);
  // A new tool has no difference: its definition is shown.
  assert.ok(text(second).includes("Reads. <img") && text(second).includes('"type": "object"'), text(second));
  assert.deepEqual(sent, []);
  const approve = find(first, "button[aria-label='Approve: a']");
  approve.click();
  await until("the failure", () => toasts.value.some((toast) => toast.text.includes("TOOL_CONFLICT: It has changed again.")));
  assert.equal(root.querySelectorAll(".hits li").length, 3);
  approve.click();
  await until("two are left", () => root.querySelectorAll(".hits li").length === 2);
  button(root, "Approve all 2").click();
  await until("the question", () => text(root).includes("Approve them only if you have read them"));
  assert.equal(sent.length, 2);
  button(find(root, "dialog"), "Approve").click();
  await until("none is left", () => root.querySelector("#mcp-changed") === null);
  assert.deepEqual(sent.slice(1), [{ tools: { a: "now-a" } }, { tools: { b: "now-b", c: "now-c" } }]);
});

// SECURITY: mcp-console
test("the shade hides definitions and differences, and nothing can be approved unseen", async (t) => {
  const one = server("files", { changed: 2 });
  const tools = [tool("a", { pinned: "old", diff: "- secret words" }), tool("b", { pinned: "old", diff: "- x" })];
  sidecar({ "GET /api/mcp": { servers: [one] }, [DETAIL]: detail(one, { tools }) });
  shade.value = true;
  t.after(() => (shade.value = false));
  const root = await open(t, PLACE);
  await until("the tool", () => root.querySelector(".hits li") !== null);
  assert.ok(!text(root).includes("secret words") && text(root).includes("Hidden. Press h"), text(root));
  const isOff = (): boolean[] => ["Approve: a", "Approve: b"].map((label) => find<HTMLButtonElement>(root, `button[aria-label='${label}']`).disabled);
  assert.deepEqual([...isOff(), button(root, "Approve all 2").disabled], [true, true, true]);
  shade.value = false;
  await until("the buttons", () => isOff().every((off) => !off));
});

test("a server that cannot be used says why and what to do; it can be connected again", async (t) => {
  let state: McpServerState = "away";
  const now = (): McpServerSummary => server("files", state === "away" ? { state, reason: `the program ended ${HOSTILE}`, code: "MCP_UNAVAILABLE" } : { state });
  sidecar({
    "GET /api/mcp": () => ({ servers: [now()] }),
    [DETAIL]: () => detail(now(), { tools: [] }),
    "POST /api/mcp/files/connect": () => ((state = "ready"), detail(now())),
  });
  const root = await open(t, PLACE);
  await until("the reason", () => text(root).includes("MCP_UNAVAILABLE the program ended <img") && text(root).includes("The sidecar tries again by itself"));
  await until("no tools", () => text(root).includes("This server has no tools."));
  assert.equal(root.querySelector("img"), null);
  button(root, "Connect again").click();
  await until("connected", () => facts(root)["State"] === "connected" && !text(root).includes("MCP_UNAVAILABLE"));
  assert.equal(requests.filter((one) => one === "POST /api/mcp/files/connect").length, 1);
});

// SECURITY: mcp-console
test("a sign-in opens a web address in another tab, and no other address", async (t) => {
  const one = server("files", { state: "login_needed", transport: "http", target: "mcp.example.org" });
  let url = "javascript:alert(1)";
  const opened: unknown[] = [];
  const before = window.open;
  window.open = (...parts: unknown[]) => (opened.push(parts), null);
  t.after(() => (window.open = before));
  sidecar({ "GET /api/mcp": { servers: [one] }, [DETAIL]: detail(one, { tools: [] }), "POST /api/mcp/files/login": () => ({ url }) });
  const root = await open(t, PLACE);
  await until("the advice", () => text(root).includes("The server wants a person to sign in."));
  button(root, "Sign in").click();
  await until("refused", () => toasts.value.some((toast) => toast.text.includes("is not a web address")));
  assert.deepEqual([opened, root.querySelector("a[target=_blank]")], [[], null]);
  url = "https://issuer.example/authorize?state=x";
  button(root, "Sign in").click();
  await until("the link", () => root.querySelector("a[target=_blank]") !== null);
  assert.deepEqual(opened, [[url, "_blank", "noopener,noreferrer"]]);
  const link = find(root, "a[target=_blank]");
  assert.deepEqual([link.getAttribute("href"), link.getAttribute("rel")], [url, "noopener noreferrer"]);
});

test("servers of nodes with one name are told apart by their keys", async (t) => {
  const [one, two] = ["docs@a.example/v1", "docs@a.example/v2"].map((key, index) => server("docs", { key, origin: "node", transport: "http", target: `https://a.example/v${index + 1}` }));
  assert.ok(one && two);
  const path = "/api/mcp/docs%40a.example%2Fv2";
  sidecar({ "GET /api/mcp": { servers: [one, two] }, [`GET ${path}`]: detail(two, { tools: [tool("second")] }), [`POST ${path}/connect`]: detail(two) });
  const list = await open(t, "#/mcp");
  await until("both", () => list.querySelectorAll("tbody tr").length === 2);
  assert.deepEqual(rows(list).map(([name]) => name), [one.key, two.key]);
  const place = list.querySelectorAll("tbody a")[1]?.getAttribute("href") ?? "";
  const root = await open(t, place);
  await until("its tools", () => rows(root).some(([name]) => name?.startsWith("second")));
  assert.ok(text(root).includes(two.target), text(root));
  button(root, "Connect again").click();
  await until("connected", () => requests.includes(`POST ${path}/connect`));
});

test("the list is read every five seconds while the page is seen; the server itself only when the list differs", async (t) => {
  // The timer of the page, which the test advances by hand. All others stay.
  const timers = new Set<() => void>();
  const { setInterval: start, clearInterval: stop } = globalThis;
  const tick = (): void => timers.forEach((act) => act());
  Object.assign(globalThis, {
    setInterval: (act: () => void, delay: number) => (delay === 5_000 ? (timers.add(act), act) : start(act, delay)),
    clearInterval: (timer: never) => (timers.delete(timer) ? undefined : stop(timer)),
  });
  let one = server("files");
  sidecar({ "GET /api/mcp": () => ({ servers: [one] }), [DETAIL]: () => detail(one) });
  const root = await open(t, PLACE);
  t.after(() => Object.assign(globalThis, { setInterval: start, clearInterval: stop }));
  const count = (request: string): number => requests.filter((made) => made === request).length;
  await until("the tools", () => root.querySelector("tbody tr") !== null);
  assert.deepEqual([count("GET /api/mcp"), count(DETAIL)], [1, 1]);
  tick();
  await until("read again", () => count("GET /api/mcp") === 2);
  assert.equal(count(DETAIL), 1);
  one = server("files", { changed: 1 });
  tick();
  await until("the server too", () => count(DETAIL) === 2);
  // Each failed try has a new time. It must not cause the next one.
  one = server("files", { state: "away", since: 2_000 });
  tick();
  await until("offline", () => count(DETAIL) === 3);
  one = server("files", { state: "away", since: 3_000 });
  tick();
  await until("read", () => count("GET /api/mcp") === 5);
  assert.equal(count(DETAIL), 3);
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  t.after(() => Reflect.deleteProperty(document, "hidden"));
  tick();
  assert.equal(count("GET /api/mcp"), 5);
  // A page that was left reads no more.
  Reflect.deleteProperty(document, "hidden");
  window.location.hash = "#/settings";
  await until("another page", () => text(root).includes("This browser"));
  tick();
  assert.equal(count("GET /api/mcp"), 5);
});

test("what a session may not do is off, and names the scope", async (t) => {
  const one = server("files", { state: "login_needed", changed: 1 });
  sidecar({ "GET /api/session": offer(FEATURES, ["read"]), "GET /api/mcp": { servers: [one] }, [DETAIL]: detail(one, { tools: [tool("a", { pinned: "old" })] }) });
  const root = await open(t, PLACE);
  await until("the tool", () => root.querySelector(".hits li") !== null);
  for (const [name, scope] of [["Connect again", "deploy"], ["Sign in", "admin"], ["Approve", "admin"]] as const) {
    const control = button(root, name);
    assert.deepEqual([control.disabled, control.parentElement?.querySelector("small")?.textContent], [true, `needs the scope ${scope}`], name);
  }
});
