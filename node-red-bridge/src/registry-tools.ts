// The tools of a sidecar's registry, for the editor: the few texts that it shows of each, cut.

import type { RegistryTool, RegistryTools } from "./admin-api";
import { clip } from "./failure";
import { isRecord } from "./record";
import type { Runtime } from "./runtime";
import { ApiFailure } from "./sidecar-api";

/** How many tools the editor gets, and characters of each text. */
const MAX_TOOLS = 2_000;
const TEXT_LENGTH = 500;

/** The tools of the registry of a runtime's sidecar. */
export async function registryTools({ api }: Runtime): Promise<RegistryTools> {
  const { value } = await api.request("GET", "/api/tools");
  const tools = isRecord(value) ? value["tools"] : undefined;
  if (!Array.isArray(tools)) {
    throw new ApiFailure(502, "PROTOCOL_MISMATCH", "the sidecar's response is not a list of tools; use matching versions");
  }
  return { tools: tools.filter(isRecord).slice(0, MAX_TOOLS).map(viewOf) };
}

function viewOf(tool: Record<string, unknown>): RegistryTool {
  const text = (name: string): string => clip(typeof tool[name] === "string" ? tool[name] : "", TEXT_LENGTH);
  return { id: text("id"), title: text("title"), description: text("description"), origin: text("origin"), state: text("state") };
}
