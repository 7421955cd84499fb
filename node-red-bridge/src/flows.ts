// What the sidecar is told of the flow that runs: our nodes whole, of all others only what the checker needs to follow
// wires (see told.ts), and credentials of models, memories and tools only.

import { createHash, createHmac } from "node:crypto";
import type { Definition, Red } from "./red";
import { isService, toldOf } from "./told";

/** Types that have no secrets the sidecar needs. */
const WITHOUT_CREDENTIALS = new Set(["agent-core", "ai-agent", "flow-tool", "chat-node"]);

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
    tooDeep ??= tooDeepOf(definition, deep);
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

/** A flow that the editor has, as it may be told: the nodes, and why the sidecar cannot read them if so. */
export function reduced(definitions: Definition[]): { nodes: Record<string, unknown>[]; tooDeep: string | undefined } {
  let tooDeep: string | undefined;
  const nodes = definitions.map((definition) => {
    const { told, deep } = readable(withoutSecretVariables(toldOf(definition)));
    tooDeep ??= tooDeepOf(definition, deep);
    return told;
  });
  return { nodes, tooDeep };
}

/** The editor has secret variables of tabs, groups and subflows among the others until they are deployed. */
function withoutSecretVariables(told: Record<string, unknown>): Record<string, unknown> {
  const { env } = told;
  if (!Array.isArray(env)) {
    return told;
  }
  const isSecret = (one: unknown): boolean =>
    typeof one === "object" && one !== null && (one as { type?: unknown }).type === "cred";
  return { ...told, env: env.map((one: unknown) => (isSecret(one) ? { ...(one as object), value: "" } : one)) };
}

/** Of nodes that are not ours nothing that deep is asked for. */
function tooDeepOf(definition: Definition, deep: string | undefined): string | undefined {
  return deep !== undefined && isService(definition.type)
    ? `${nameOf(definition)} nests deeper than ${NODE_LEVELS} levels in \`${deep}\`; make it flatter and deploy`
    : undefined;
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
