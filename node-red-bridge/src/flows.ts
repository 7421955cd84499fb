// The flow as the sidecar of a runtime receives it: the nodes that it runs with all properties, of all others what the checker
// needs to follow wires (see node-definition.ts), the credentials of what the agents of the runtime use, and the operations of
// its nodes. Agents of other runtimes are disabled in it, so that only one sidecar runs each agent.

import { createHash, createHmac } from "node:crypto";
import { FlowTooLarge } from "./flow-graph";
import { PASSWORD_MASK, publicDefinition, runsInSidecar } from "./node-definition";
import { readNodeTools } from "./node-tools";
import { isRecord } from "./record";
import type { Definition, Red } from "./red";
import { type RuntimeNodes, nodesOfRuntime } from "./runtime-nodes";
import { type Sentence, sentence } from "./sentence";
import { AGENT_TYPES, WITHOUT_CREDENTIALS } from "./sidecar-types";
import { wellFormed } from "./well-formed";

/** Levels of one node: the sidecar reads 120, of which the message and its list of nodes take two. */
const NODE_LEVELS = 118;

/** A flow as the sidecar receives it. */
export interface FlowSnapshot {
  revision: string;
  /** The rest of the message `flows`, as JSON after its number. */
  rest: string;
  /** Sentences for the log about properties and operations that were left out. */
  warnings: string[];
  /** The reason if a node nests too deep for the sidecar. */
  tooDeep: Sentence | undefined;
  /** What the sidecar runs of the flow. */
  own: RuntimeNodes;
}

/**
 * The flow that starts or runs now, for the sidecar of a runtime. `secret` keeps an attacker from guessing credentials by the
 * revision.
 */
export function snapshotFlow(RED: Red, runtime: string, secret: string): FlowSnapshot {
  const definitions: Definition[] = [];
  RED.nodes.eachNode((definition) => definitions.push(definition));
  const flows: Record<string, unknown>[] = [];
  const credentials: Record<string, Record<string, string>> = {};
  const warnings: string[] = [];
  const types = new Set<string>();
  const own = ownNodes(definitions, runtime, (warning) => warnings.push(warning));
  let tooDeep: Sentence | undefined;
  for (const definition of definitions) {
    types.add(definition.type);
    const { node, deep } = toReadable(publicDefinition(definition));
    const isForeign = AGENT_TYPES.includes(definition.type) && !own.agents.has(definition.id);
    flows.push(isForeign ? { ...node, d: true } : node);
    const name = nameOf(definition);
    tooDeep ??= tooDeepOf(definition, deep);
    if (own.services.has(definition.id) && hasCredentials(definition.type)) {
      const values = textCredentials(RED.nodes.getCredentials(definition.id), (key) =>
        warnings.push(
          `${name}: the credential \`${key}\` contains half a character and is left out; enter it again and deploy`,
        ),
      );
      if (Object.keys(values).length > 0) {
        credentials[definition.id.toWellFormed()] = values;
      }
    }
  }
  const flowsText = JSON.stringify(flows);
  const credentialsText = JSON.stringify(credentials);
  const credentialsDigest = createHmac("sha256", secret).update(credentialsText).digest();
  const nodeTools = readNodeTools(RED, types, (warning) => warnings.push(warning));
  // A sidecar that knows no operations refuses the field.
  const toolsText = Object.keys(nodeTools).length === 0 ? "" : `,"nodeTools":${JSON.stringify(nodeTools)}`;
  const hash = createHash("sha256").update(flowsText).update(credentialsDigest).update(tooDeep?.text ?? "").update(toolsText);
  const revision = hash.digest("hex");
  const rest = `"revision":"${revision}","flows":${flowsText},"credentials":${credentialsText}${toolsText}}`;
  return { revision, rest, warnings, tooDeep, own };
}

/** The nodes of a runtime; none of a flow that is too large. */
function ownNodes(definitions: Definition[], runtime: string, warn: (warning: string) => void): RuntimeNodes {
  try {
    return nodesOfRuntime(definitions, runtime);
  } catch (error) {
    if (error instanceof FlowTooLarge) {
      warn("the flow has too many nodes or wires: its agents do not run, and the sidecar gets no credentials; make it smaller and deploy");
      return { agents: new Set(), services: new Set(), foreign: new Set() };
    }
    throw error;
  }
}

/**
 * The flow of the editor as the sidecar may receive it, and the reason if it nests too deep. Of credentials it says only
 * whether they are set: in the editor, or else as `stored` has them.
 */
export function reduceFlow(
  definitions: Definition[],
  stored: (id: string) => Record<string, unknown> | undefined,
): { nodes: Record<string, unknown>[]; tooDeep: Sentence | undefined } {
  let tooDeep: Sentence | undefined;
  const nodes = definitions.map((definition) => {
    const { node, deep } = toReadable(withoutSecretVariables(publicDefinition(definition)));
    tooDeep ??= tooDeepOf(definition, deep);
    if (hasCredentials(definition.type)) {
      const sent = definition["credentials"];
      const credentials = { ...mask(stored(definition.id)), ...mask(isRecord(sent) ? sent : undefined) };
      return Object.keys(credentials).length === 0 ? node : { ...node, credentials };
    }
    return node;
  });
  return { nodes, tooDeep };
}

/** Whether the sidecar receives credentials of nodes of this type. */
function hasCredentials(type: string): boolean {
  return runsInSidecar(type) && !WITHOUT_CREDENTIALS.includes(type);
}

/** The mask for each credential that is set, and an empty text for each one that is not. */
function mask(credentials: Record<string, unknown> | undefined): Record<string, string> {
  const entries = Object.entries(credentials ?? {});
  return Object.fromEntries(entries.map(([key, value]) => [key.toWellFormed(), isSet(value) ? PASSWORD_MASK : ""]));
}

function isSet(value: unknown): boolean {
  return (typeof value === "string" && value !== "") || typeof value === "number";
}

/** Until a deploy the editor keeps secret variables of tabs, groups and subflows with the other variables. */
function withoutSecretVariables(node: Record<string, unknown>): Record<string, unknown> {
  const { env } = node;
  if (!Array.isArray(env)) {
    return node;
  }
  const isSecret = (one: unknown): boolean =>
    typeof one === "object" && one !== null && (one as { type?: unknown }).type === "cred";
  return { ...node, env: env.map((one: unknown) => (isSecret(one) ? { ...(one as object), value: "" } : one)) };
}

/** Only for nodes that the sidecar runs: of all others it needs no property that can nest this deep. */
function tooDeepOf(definition: Definition, deep: string | undefined): Sentence | undefined {
  if (deep === undefined || !runsInSidecar(definition.type)) {
    return undefined;
  }
  const [node, levels] = [nameOf(definition), String(NODE_LEVELS)];
  return sentence("node_too_deep", { node: { text: node }, levels: { text: levels }, property: { text: deep } });
}

/** A node as the sidecar can read it, and the first property that is left out because it nests too deep. */
function toReadable(node: Record<string, unknown>): { node: Record<string, unknown>; deep: string | undefined } {
  let deep: string | undefined;
  const entries = Object.entries(node).flatMap(([key, value]) => {
    try {
      return [[key.toWellFormed(), wellFormed(value, NODE_LEVELS - 1)] as const];
    } catch {
      deep ??= key.toWellFormed();
      return [];
    }
  });
  return { node: Object.fromEntries(entries), deep };
}

function nameOf({ id, type, name }: Definition): string {
  return `${type} ${typeof name === "string" && name !== "" ? `"${name}" ` : ""}(${id})`.toWellFormed();
}

/** Credentials as texts. Leaves out one that contains half a character, and calls `onBroken` with its key. */
function textCredentials(
  credentials: Record<string, unknown> | undefined,
  onBroken: (key: string) => void,
): Record<string, string> {
  const own: Record<string, string> = {};
  for (const [key, value] of Object.entries(credentials ?? {})) {
    if (isSet(value)) {
      const text = String(value);
      if (text.isWellFormed() && key.isWellFormed()) {
        own[key] = text;
      } else {
        onBroken(key.toWellFormed());
      }
    }
  }
  return own;
}
