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

/** The names of servers. None can change the path of a request. */
const NAME = /^[A-Za-z0-9_-]{1,40}$/;

/** The MCP servers of a runtime's sidecar. */
export async function mcpServers({ api }: Runtime): Promise<McpServerViews> {
  const { value } = await api.request("GET", "/api/mcp");
  return { servers: recordsOf(value, "servers", MAX_SERVERS).map(serverView) };
}

/** A server with its tools. The sidecar connects to it first, if it is not connected. */
export async function mcpServer({ api }: Runtime, name: string): Promise<McpServerTools> {
  if (!NAME.test(name)) {
    throw new ApiFailure(404, "NOT_FOUND", "There is no such server: names have letters, digits, `_` and `-`.");
  }
  const { value } = await api.request("GET", `/api/mcp/${name}`, undefined, MCP_SERVER_MS);
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
  return { name: textOf(tool, "name"), description: textOf(tool, "description"), effect: textOf(tool, "effect"), state: textOf(tool, "state") };
}
