// The state of an MCP server and of its tools, in a word and a colour.

import type { McpServerState, McpToolInfo } from "@redflow/bindings";
import { formatCount, t, tOf } from "../../words.js";

/** The colours of the states. */
const COLOURS: Readonly<Record<McpServerState, string>> = { idle: "", connecting: "running", ready: "completed", away: "waiting", login_needed: "waiting", blocked: "failed" };

export function State({ state }: { state: McpServerState }) {
  return <span class={`badge status-${COLOURS[state]}`}>{tOf("mcp.state", state)}</span>;
}

/** How many tools wait for an approval. */
export function Changed({ count }: { count: number }) {
  return count === 0 ? <>0</> : <span class="badge tool-changed">{formatCount(count)}</span>;
}

/** Whether a person must approve the definition that the server sends now. A blocked tool cannot be approved. */
export function isUnapproved({ included, digest, pinned, state }: McpToolInfo): boolean {
  return included && state !== "blocked" && digest !== undefined && digest !== pinned;
}

/** Whether the definition of a tool is approved, in words. */
export function approvalOf(tool: McpToolInfo): string {
  if (tool.digest === undefined) {
    return t("mcp.missing");
  }
  return !isUnapproved(tool) && tool.pinned === tool.digest ? t("mcp.approved") : tool.pinned === undefined ? t("mcp.new") : t("tool.state.changed");
}
