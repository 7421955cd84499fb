// The dialog of an mcp-client: the MCP servers of the connected sidecars as suggestions, and the tools of the chosen one with
// their effect class and a box each. The field *Tools* stays the only value: the boxes change its text. Without a sidecar the
// fields can still be filled in by hand.

import type { McpServerTools, McpToolView } from "../admin-api.js";
import { RequestError, adminApi } from "./admin-client.mjs";
import { MAX_ROW_CHARS, element, untrusted } from "./dom.mjs";
import { jsonOf } from "./fields.mjs";
import { EFFECTS, effectOf, keyOf, patternsOf, tickOf, withTick } from "./mcp-tools.mjs";
import { text } from "./text.mjs";

/** The most rows. */
const MAX_ROWS = 200;

/** The states of a server that have a text. */
const STATES = ["idle", "connecting", "ready", "away", "login_needed", "blocked"];

interface Fields {
  server: HTMLInputElement;
  url: HTMLInputElement;
  include: HTMLInputElement;
  exclude: HTMLInputElement;
  effects: HTMLTextAreaElement;
}

/** Prepares the dialog. For `oneditprepare`, after the fields are prepared. */
export async function prepareMcp(): Promise<void> {
  const field = (name: string): HTMLElement | null => document.getElementById(`node-input-${name}`);
  const [server, url, include, exclude, effects] = [field("server"), field("url"), field("include"), field("exclude"), field("redflow-effects")];
  const [state, list, access] = [field("redflow-mcpState"), field("redflow-mcpTools"), field("redflow-mcpAccess")];
  const areInputs = server instanceof HTMLInputElement && url instanceof HTMLInputElement && include instanceof HTMLInputElement && exclude instanceof HTMLInputElement;
  if (!areInputs || !(effects instanceof HTMLTextAreaElement) || state === null || list === null || access === null) {
    return;
  }
  const fields: Fields = { server, url, include, exclude, effects };
  // A server of the manifest has its own authentication.
  const showAccess = (): void => {
    access.hidden = url.value.trim() === "";
  };
  $(url).on("input change", showAccess);
  showAccess();
  let last = 0;
  // Draws the boxes as the fields say. Each loaded list has its own.
  let update = (): void => undefined;
  [include, exclude, effects].forEach((changed) => $(changed).on("input change", () => update()));
  const load = async (): Promise<void> => {
    last += 1;
    const own = last;
    const name = server.value.trim();
    list.replaceChildren();
    update = () => undefined;
    state.textContent = name === "" ? text("nodes.mcp.choose") : text("nodes.mcp.loading");
    if (name === "") {
      return;
    }
    const found = await findServer(keyOf(name, url.value.trim()));
    // The user may have chosen another server, or closed the dialog.
    if (own === last && state.isConnected) {
      update = show(found, fields, state, list);
      update();
    }
  };
  [server, url].forEach((changed) => $(changed).on("change", () => void load()));
  await Promise.all([offerServers(server), load()]);
}

/** Fills the suggestions of the field with the servers of all connected sidecars. */
async function offerServers(field: HTMLInputElement): Promise<void> {
  const runtimes = await connectedRuntimes().catch(() => []);
  const answers = await Promise.allSettled(runtimes.map((id) => adminApi.mcpServers(id)));
  const names = new Set(answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value.servers.map(({ name }) => name) : [])));
  const list = element("datalist");
  list.id = `${field.id}-names`;
  list.append(...[...names].sort().map((name) => {
    const option = element("option");
    option.value = name;
    return option;
  }));
  field.after(list);
  field.setAttribute("list", list.id);
}

async function connectedRuntimes(): Promise<string[]> {
  const { runtimes } = await adminApi.runtimes();
  return runtimes.filter(({ state }) => state.is === "connected").map(({ id }) => id);
}

/** A server of a connected sidecar; else the key of the reason. `name` is what routes call it. */
async function findServer(name: string): Promise<McpServerTools | string> {
  try {
    const runtimes = await connectedRuntimes();
    if (runtimes.length === 0) {
      return "nodes.mcp.offline";
    }
    const answers = await Promise.allSettled(runtimes.map((id) => adminApi.mcpServer(id, name)));
    const found = answers.find((answer) => answer.status === "fulfilled");
    const isUnknown = answers.every((answer) => answer.status === "rejected" && answer.reason instanceof RequestError && answer.reason.status === 404);
    return found?.value ?? (isUnknown ? "nodes.mcp.unknown" : "nodes.mcp.failed");
  } catch {
    return "nodes.mcp.offline";
  }
}

/** Shows the state and the tools of a server. Gives what draws the boxes again. */
function show(found: McpServerTools | string, fields: Fields, state: HTMLElement, list: HTMLElement): () => void {
  if (typeof found === "string") {
    state.textContent = text(found === "nodes.mcp.unknown" && fields.url.value.trim() !== "" ? "nodes.mcp.deploy" : found);
    return () => undefined;
  }
  const word = text(`nodes.mcp.state.${STATES.includes(found.state) ? found.state : "idle"}`);
  state.replaceChildren(element("span", { text: word }), ...(found.reason === "" ? [] : [untrusted("div", found.reason, { maxChars: MAX_ROW_CHARS })]));
  if (found.tools.length === 0) {
    list.textContent = found.state === "ready" ? text("nodes.mcp.noTools") : "";
    return () => undefined;
  }
  const all = found.tools.map(({ name }) => name);
  const boxes = found.tools.slice(0, MAX_ROWS).map((tool) => row(tool, all, fields));
  const rows = boxes.map(({ root }) => root);
  if (found.tools.length > MAX_ROWS) {
    rows.push(element("li", { class: "redflow-hint", text: text("agent.tools.more", { n: found.tools.length - MAX_ROWS }) }));
  }
  list.replaceChildren(element("ul", { class: "redflow-registry-tools" }, ...rows));
  return () => boxes.forEach(({ refresh }) => refresh());
}

/** A box with the name of a tool, its effect class, and what it does. `refresh` draws it as the fields say. */
function row({ name, description, effect, tightened, state }: McpToolView, all: string[], fields: Fields): { root: HTMLElement; refresh: () => void } {
  const box = element("input", { attributes: { type: "checkbox" } });
  box.addEventListener("change", () => {
    const names = withTick(patternsOf(fields.include.value), name, box.checked, all);
    $(fields.include).val(names.join(", ")).trigger("change");
  });
  const label = element("label", { class: "redflow-agent-tool-box" }, box, untrusted("span", name, { maxChars: MAX_ROW_CHARS }));
  const kind = element("span", { class: "redflow-agent-tool-type" });
  const about = state === "ready" ? description : `${description} (${state})`;
  const refresh = (): void => {
    const { isTicked, isFixed } = tickOf(name, patternsOf(fields.include.value), patternsOf(fields.exclude.value));
    [box.checked, box.disabled] = [isTicked, isFixed];
    const own = effectOf(jsonOf(fields.effects.value), name);
    const shown = own === undefined ? effect : own === "read" || own === "idempotent" ? tightened[own] : own;
    kind.textContent = EFFECTS.includes(shown) ? text(`nodes.option.effect.${shown}`) : "";
  };
  return { root: element("li", {}, label, kind, untrusted("div", about, { class: "redflow-hint", maxChars: MAX_ROW_CHARS })), refresh };
}
