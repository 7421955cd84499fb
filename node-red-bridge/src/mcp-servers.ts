// The MCP servers of a sidecar, for the editor: the few texts that it shows of each, cut.

import { MCP_SERVER_MS } from "./admin-api";
import type { McpServerTools, McpServerView, McpServerViews, McpToolView } from "./admin-api";
import { clip } from "./failure";
import { isRecord } from "./record";
import type { Runtime } from "./runtime";
import { ApiFailure } from "./sidecar-api";

/** How many servers and tools the editor gets, and characters of each text. */
const MAX_SERVERS = 500;
const MAX_TOOLS = 1_000;
const TEXT_LENGTH = 500;

/** What routes call servers: a name, or a name with the place of a node's server. None is a path of its own, such as `..`. */
const KEY = /^[A-Za-z0-9_-]{1,40}(@[!-~]{1,400})?$/;

/** The MCP servers of a runtime's sidecar. */
export async function mcpServers({ api }: Runtime): Promise<McpServerViews> {
  const { value } = await api.request("GET", "/api/mcp");
  return { servers: recordsOf(value, "servers", MAX_SERVERS).map(serverView) };
}

/** A server with its tools. The sidecar connects to it first, if it is not connected. */
export async function mcpServer({ api }: Runtime, key: string): Promise<McpServerTools> {
  if (!KEY.test(key)) {
    throw new ApiFailure(404, "NOT_FOUND", "There is no such server: names have letters, digits, `_` and `-`.");
  }
  const { value } = await api.request("GET", `/api/mcp/${encodeURIComponent(key)}`, undefined, MCP_SERVER_MS);
  const summary = isRecord(value) && isRecord(value["summary"]) ? value["summary"] : {};
  return { ...serverView(summary), tools: recordsOf(value, "tools", MAX_TOOLS).map(toolView) };
}

function recordsOf(value: unknown, list: string, most: number): Record<string, unknown>[] {
  const found = isRecord(value) ? value[list] : undefined;
  if (!Array.isArray(found)) {
    throw new ApiFailure(502, "PROTOCOL_MISMATCH", `the sidecar's response has no list of ${list}; use matching versions`);
  }
  return found.filter(isRecord).slice(0, most);
}

const textOf = (from: Record<string, unknown>, name: string): string => clip(typeof from[name] === "string" ? from[name] : "", TEXT_LENGTH);

function serverView(server: Record<string, unknown>): McpServerView {
  return { name: textOf(server, "name"), state: textOf(server, "state"), reason: textOf(server, "reason") };
}

function toolView(tool: Record<string, unknown>): McpToolView {
  const classes = isRecord(tool["tightened"]) ? tool["tightened"] : {};
  // A sidecar of an earlier version does not say it.
  const tightened = { read: textOf(classes, "read") || "read", idempotent: textOf(classes, "idempotent") || "idempotent" };
  return { name: textOf(tool, "name"), description: textOf(tool, "description"), effect: textOf(tool, "effect"), tightened, state: textOf(tool, "state") };
}
