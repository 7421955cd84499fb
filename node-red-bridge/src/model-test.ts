// Tests a model for the editor, or lists the models of its server. The sidecar makes the calls: it has the stored keys, and sends
// each only to the address that the deployed node names.

import { MODEL_TEST_MS } from "./admin-api";
import { publicDefinition } from "./node-definition";
import { isRecord } from "./record";
import type { Runtime } from "./runtime";
import { ApiFailure } from "./sidecar-api";
import type { ApiResponse } from "./sidecar-api";

/** Sends the dialog of a model to the sidecar. */
export function askModel(runtime: Runtime, verb: "test" | "list", body: Record<string, unknown>): Promise<ApiResponse> {
  const { type, config, credentials = {}, node } = body;
  const areTexts = isRecord(credentials) && Object.values(credentials).every((key) => typeof key === "string");
  if (typeof type !== "string" || !isRecord(config) || !areTexts || !(node === undefined || typeof node === "string")) {
    throw new ApiFailure(400, "BODY_INVALID", "The body must have `type`, `config`, and optionally `credentials` and `node`.");
  }
  if (node !== undefined && !runtime.agentsUse(node)) {
    const help = "wire the model to an agent of that runtime and deploy, or type the key again";
    throw new ApiFailure(409, "KEY_NOT_SENT", `The sidecar has the keys only of what its agents use; ${help}.`);
  }
  const { type: _, ...own } = publicDefinition({ ...config, type });
  const stored = node === undefined ? {} : { node, instance: runtime.instance };
  return runtime.api.request("POST", `/api/models/${verb}`, { type, config: own, credentials, ...stored }, MODEL_TEST_MS);
}
