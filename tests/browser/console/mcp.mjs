// MCP servers: their states and tools, definitions that change and are approved, texts of strangers, keys and scopes.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { eventually } from "../kit/wait.mjs";
import { startConsole } from "./fixture.mjs";
import { openByKeyboard } from "./keys.mjs";
import { HOSTILE } from "./large-flow.mjs";
import { checkHostile, findBarriers, openPage } from "./page.mjs";

const SERVER = fileURLToPath(new URL("../kit/mcp-server.mjs", import.meta.url));
const SCREENSHOT = fileURLToPath(new URL("../dist/console/mcp.png", import.meta.url));

const tool = (name, description) => ({ name, description, inputSchema: { type: "object", properties: { path: { type: "string" } } } });
const TOOLS = [tool("read_file", "Reads a file."), tool("write_file", "Writes a file.")];
const RESOURCES = [{ uri: "notes://today", name: "today", description: "The notes of today" }];
const PROMPTS = [{ name: "review", description: "Reviews a text" }];

/** Starts a sidecar with the servers `files`, `hostile` and `broken`. */
export async function startMcp() {
  const folder = mkdtempSync(join(tmpdir(), "redflow-mcp-"));
  const fileOf = (name) => join(folder, `${name}.json`);
  const write = (name, content) => writeFileSync(fileOf(name), JSON.stringify(content));
  const definition = (name) => ({ command: process.execPath, args: [SERVER, fileOf(name)], read: [dirname(SERVER), folder, dirname(process.execPath)], effects: { "read_*": "read" } });
  write("files", { tools: TOOLS, resources: RESOURCES, prompts: PROMPTS });
  write("hostile", { tools: [tool("bad", `Text ${HOSTILE}`)], resources: [{ uri: "x://y", name: `Name ${HOSTILE}`, description: `Text ${HOSTILE}` }] });
  const names = ["files", "hostile", "broken"];
  const console = await startConsole(undefined, { mcp: Object.fromEntries(names.map((name) => [name, definition(name)])) });
  const show = async (name) => (await console.request("GET", `/api/mcp/${name}`)).json;
  return {
    ...console,
    show,
    /** Lets a server send other lists, after it is connected again. */
    change: async (name, content) => {
      write(name, content);
      assert.equal((await console.request("POST", `/api/mcp/${name}/connect`)).status, 200);
    },
    remove: (name) => rmSync(fileOf(name), { force: true }),
    write,
    stop: async () => {
      await console.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Approves what the server sends now, so that each scenario begins alike. */
async function reset(console) {
  await console.change("files", { tools: TOOLS, resources: RESOURCES, prompts: PROMPTS });
  const { tools } = await console.show("files");
  const digests = Object.fromEntries(tools.flatMap(({ name, digest }) => (digest === undefined ? [] : [[name, digest]])));
  assert.equal((await console.request("POST", "/api/mcp/files/pin", { tools: digests })).status, 200);
}

export async function approvals(t, browser, console) {
  await reset(console);
  const { page, main, check } = await openPage(t, browser, console);
  await page.getByRole("navigation").getByRole("link", { name: "MCP" }).click();
  const row = main.getByRole("row").filter({ hasText: "files" });
  await row.getByText("connected").waitFor();
  assert.deepEqual((await row.locator("th, td").allInnerTexts()).map((text) => text.trim()), ["files", "connected", "program", "2025-11-25", "2", "0"]);
  assert.deepEqual(await findBarriers(page), []);
  await row.getByRole("link").click();
  await main.getByRole("heading", { level: 1, name: "files" }).waitFor();
  const list = main.getByRole("group", { name: "Tools" });
  await list.getByText("read_file").first().waitFor();
  const cells = async () => (await list.locator("tbody tr").all()).length;
  assert.equal(await cells(), 2);
  assert.match(await list.locator("tbody tr").first().innerText(), /read_file\s+reads only\s+ready\s+approved/);
  assert.match(await list.locator("tbody tr").nth(1).innerText(), /write_file\s+at most once\s+ready\s+approved/);
  await main.getByText("The notes of today").waitFor();
  await main.getByText("Reviews a text").waitFor();
  await page.screenshot({ path: SCREENSHOT });
  // The server changes a definition. The page connects again, shows what is different, and approves exactly that.
  console.write("files", { tools: [tool("read_file", "Reads a file and sends it away."), TOOLS[1]] });
  await main.getByRole("button", { name: "Connect again" }).click();
  const card = main.locator(".hits li").filter({ hasText: "read_file" });
  await card.locator("del").getByText("Reads a file.").first().waitFor();
  await card.locator("ins").getByText("sends it away").first().waitFor();
  const { tools } = await console.show("files");
  assert.deepEqual(tools.map(({ name, state }) => [name, state]), [["read_file", "changed"], ["write_file", "ready"]]);
  assert.deepEqual(await findBarriers(page), []);
  await card.getByRole("button", { name: "Approve" }).click();
  await card.waitFor({ state: "detached" });
  await eventually("it can be called", async () => (await console.show("files")).tools.every(({ state }) => state === "ready"));
  // An approval of a definition that the page has not shown is refused.
  const before = (await console.show("files")).tools.map(({ pinned }) => pinned);
  const refused = await console.request("POST", "/api/mcp/files/pin", { tools: { read_file: "0".repeat(64) } });
  assert.deepEqual([refused.json.code, (await console.show("files")).tools.map(({ pinned }) => pinned)], ["MCP_PIN_STALE", before]);
  check();
}

export async function offline(t, browser, console) {
  console.remove("broken");
  const { page, main, go, check } = await openPage(t, browser, console, { path: "#/mcp/broken" });
  await main.getByText("offline", { exact: true }).waitFor();
  await main.getByText("MCP_UNAVAILABLE").waitFor();
  await main.getByText("The sidecar tries again by itself").waitFor();
  assert.deepEqual(await findBarriers(page), []);
  console.write("broken", { tools: TOOLS });
  await main.getByRole("button", { name: "Connect again" }).click();
  await main.getByText("connected", { exact: true }).waitFor();
  await main.getByRole("group", { name: "Tools" }).getByText("read_file").first().waitFor();
  await go("#/mcp/nowhere");
  await main.getByText("There is no MCP server with this name.").waitFor();
  check();
}

/** Names and texts of a server stay text, also at a width of 360 pixels and in the dark. */
export async function hostile(t, browser, console) {
  const { page, main, check } = await openPage(t, browser, console, { path: "#/mcp/hostile", colorScheme: "dark", viewport: { width: 360, height: 800 } });
  await main.getByRole("group", { name: "Tools" }).locator("summary").first().click();
  await main.getByText("Text <img src=x onerror=").first().waitFor();
  await checkHostile(page, "a server");
  assert.deepEqual(await findBarriers(page), []);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false);
  check();
}

export async function byKeyboard(t, browser, console) {
  await reset(console);
  const { main, activate, press, tabTo, isFocused, check } = await openByKeyboard(t, browser, console, { path: "#/mcp" });
  const first = main.locator("[data-entry]").first();
  await first.waitFor();
  await press("j");
  await isFocused(first);
  await press("Enter");
  await main.getByRole("heading", { level: 1, name: "broken" }).waitFor();
  await tabTo(main.getByRole("link", { name: "All MCP servers" }));
  await press("Enter");
  await first.waitFor();
  await press("j");
  await press("j");
  await press("Enter");
  await main.getByRole("heading", { level: 1, name: "files" }).waitFor();
  console.write("files", { tools: [tool("read_file", "Reads another file."), TOOLS[1]] });
  await activate(main.getByRole("button", { name: "Connect again" }));
  const approve = main.getByRole("button", { name: "Approve: read_file" });
  await approve.waitFor();
  await activate(approve);
  await approve.waitFor({ state: "detached" });
  await check();
}

/** Each scope may do what its buttons say; the sidecar refuses the rest too. */
export async function scopes(t, browser, console) {
  await reset(console);
  await console.change("files", { tools: [tool("read_file", "Reads what you want."), TOOLS[1]] });
  const { tools } = await console.show("files");
  const { digest } = tools.find(({ name }) => name === "read_file");
  const ORDER = ["read", "run", "deploy", "admin"];
  const actions = [
    ["Connect again", "deploy", ["POST", "/api/mcp/files/connect"]],
    ["Approve: read_file", "admin", ["POST", "/api/mcp/files/pin", { tools: { read_file: digest } }]],
  ];
  for (const scope of ORDER) {
    const token = await console.tokenWith(`mcp-${scope}`, scope);
    const { main, go, check } = await openPage(t, browser, console, { token });
    await go("#/mcp/files");
    for (const [name, needs, [method, path, body]] of actions) {
      const control = main.getByRole("button", { name, exact: true });
      await control.waitFor();
      const isAllowed = ORDER.indexOf(scope) >= ORDER.indexOf(needs);
      await eventually(`${scope}: ${name}`, async () => (await control.isEnabled()) === isAllowed);
      if (!isAllowed) {
        assert.match(await control.locator("xpath=..").innerText(), new RegExp(`needs the scope ${needs}`));
        const refused = await console.request(method, path, body, token);
        assert.deepEqual([refused.status, refused.json.code], [403, "FORBIDDEN"], `${scope}: ${name}`);
      }
    }
    for (const [method, path] of [["POST", "/api/mcp/files/login"], ["DELETE", "/api/mcp/files/login"]]) {
      if (scope !== "admin") {
        assert.equal((await console.request(method, path, undefined, token)).status, 403, `${scope}: ${method} ${path}`);
      }
    }
    check();
  }
}
