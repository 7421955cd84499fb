// What the sidecar is told of a flow: our nodes whole, of all others only what the checker needs to follow wires.
// Never the code or the settings of other nodes, and credentials of models, memories and tools only.

import { createHash, createHmac } from "node:crypto";
import type { Definition, Red } from "./red";

/** Types whose nodes the sidecar runs. */
const SERVICES = new Set([
  "agent-core",
  "ai-agent",
  "openai-model",
  "anthropic-model",
  "ollama-model",
  "scripted-model",
  "buffer-memory",
  "window-memory",
  "redis-memory",
  "calculator-tool",
  "http-request-tool",
  "knowledge-base-tool",
  "flow-tool",
  "chat-node",
]);
const SERVICE_PREFIXES = ["model.", "memory.", "tool."];

/** Types that have no secrets the sidecar needs. */
const WITHOUT_CREDENTIALS = new Set(["agent-core", "ai-agent", "flow-tool", "chat-node"]);

/** What is told of every other node. Not `timeout`: of a function or a link call it means something else. */
const TOLD = [
  "id",
  "type",
  "z",
  "g",
  "d",
  "name",
  "label",
  "disabled",
  "wires",
  "x",
  "y",
  "links",
  "mode",
  "scope",
  "env",
  "in",
  "out",
  "status",
  "nodes",
  "toolName",
  "description",
  "inputSchema",
  "effect",
  "onUnknown",
];

/** Levels of one node: the sidecar reads 120 in all, and the message and its list of nodes are two of them. */
const NODE_LEVELS = 118;

/** A flow as the sidecar gets it. */
export interface Told {
  revision: string;
  /** The rest of the message `flows`, as JSON after its number. */
  rest: string;
  /** What a person should know of what was left out. */
  warnings: string[];
  /** Why the sidecar cannot read it. */
  tooDeep: string | undefined;
}

/** The flow that is being started, or that runs. `secret` keeps credentials from being guessed from the revision. */
export function tellFlows(RED: Red, secret: string): Told {
  const flows: Record<string, unknown>[] = [];
  const credentials: Record<string, Record<string, string>> = {};
  const warnings: string[] = [];
  let tooDeep: string | undefined;
  RED.nodes.eachNode((definition) => {
    const { told, deep } = readable(toldOf(definition));
    flows.push(told);
    const name = nameOf(definition);
    // Of other nodes nothing that deep is asked for.
    if (deep !== undefined && isService(definition.type)) {
      tooDeep ??= `${name} nests deeper than ${NODE_LEVELS} levels in \`${deep}\`; make it flatter and deploy`;
    }
    if (isService(definition.type) && !WITHOUT_CREDENTIALS.has(definition.type)) {
      const own = texts(RED.nodes.getCredentials(definition.id), (key) =>
        warnings.push(
          `${name}: the credential \`${key}\` has half a character in it and is left out; enter it again and deploy`,
        ),
      );
      if (Object.keys(own).length > 0) {
        credentials[definition.id.toWellFormed()] = own;
      }
    }
  });
  const flowsText = JSON.stringify(flows);
  const credentialsText = JSON.stringify(credentials);
  const marked = createHmac("sha256", secret).update(credentialsText).digest();
  const revision = createHash("sha256").update(flowsText).update(marked).update(tooDeep ?? "").digest("hex");
  const rest = `"revision":"${revision}","flows":${flowsText},"credentials":${credentialsText}}`;
  return { revision, rest, warnings, tooDeep };
}

/** What is told of one node. */
export function toldOf(definition: Definition): Record<string, unknown> {
  const told: Record<string, unknown> = {};
  const keys = isService(definition.type) ? Object.keys(definition) : TOLD;
  for (const key of keys) {
    if (key !== "credentials" && !key.startsWith("_") && Object.hasOwn(definition, key)) {
      told[key] = definition[key];
    }
  }
  return told;
}

function isService(type: string): boolean {
  return SERVICES.has(type) || SERVICE_PREFIXES.some((prefix) => type.startsWith(prefix));
}

/** What is told of a node as the sidecar can read it; and the property that is left out because it is too deep. */
function readable(told: Record<string, unknown>): { told: Record<string, unknown>; deep: string | undefined } {
  let deep: string | undefined;
  const entries = Object.entries(told).flatMap(([key, value]) => {
    try {
      return [[key.toWellFormed(), wellFormed(value, NODE_LEVELS - 1)] as const];
    } catch {
      deep ??= key.toWellFormed();
      return [];
    }
  });
  return { told: Object.fromEntries(entries), deep };
}

/** A value without half characters, which no reader of JSON but JavaScript takes. Throws if it is too deep. */
function wellFormed(value: unknown, levels: number): unknown {
  if (typeof value === "string") {
    return value.toWellFormed();
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (levels === 0) {
    throw new RangeError("too deep");
  }
  if (Array.isArray(value)) {
    return value.map((item) => wellFormed(item, levels - 1));
  }
  const entries = Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item, levels - 1)] as const);
  return Object.fromEntries(entries);
}

function nameOf({ id, type, name }: Definition): string {
  return `${type} ${typeof name === "string" && name !== "" ? `"${name}" ` : ""}(${id})`.toWellFormed();
}

/** Credentials as texts. One that would not stay what it is is told to `broken`, and left out. */
function texts(credentials: Record<string, unknown> | undefined, broken: (key: string) => void): Record<string, string> {
  const own: Record<string, string> = {};
  for (const [key, value] of Object.entries(credentials ?? {})) {
    if ((typeof value === "string" && value !== "") || typeof value === "number") {
      const text = String(value);
      if (text.isWellFormed() && key.isWellFormed()) {
        own[key] = text;
      } else {
        broken(key.toWellFormed());
      }
    }
  }
  return own;
}
