// The flow as the sidecar receives it: the nodes that it runs with all properties, of all others what the checker needs to
// follow wires (see node-definition.ts), the credentials of models, memories, tools and key nodes only, and the operations of its
// nodes.

import { createHash, createHmac } from "node:crypto";
import { PASSWORD_MASK, publicDefinition, runsInSidecar } from "./node-definition";
import { readNodeTools } from "./node-tools";
import { isRecord } from "./record";
import type { Definition, Red } from "./red";
import { type Sentence, sentence } from "./sentence";
import { WITHOUT_CREDENTIALS } from "./sidecar-types";
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
}

/** The flow that starts or runs now. `secret` keeps an attacker from guessing credentials by the revision. */
export function snapshotFlow(RED: Red, secret: string): FlowSnapshot {
  const flows: Record<string, unknown>[] = [];
  const credentials: Record<string, Record<string, string>> = {};
  const warnings: string[] = [];
  const types = new Set<string>();
  let tooDeep: Sentence | undefined;
  RED.nodes.eachNode((definition) => {
    types.add(definition.type);
    const { node, deep } = toReadable(publicDefinition(definition));
    flows.push(node);
    const name = nameOf(definition);
    tooDeep ??= tooDeepOf(definition, deep);
    if (hasCredentials(definition.type)) {
      const own = textCredentials(RED.nodes.getCredentials(definition.id), (key) =>
        warnings.push(
          `${name}: the credential \`${key}\` contains half a character and is left out; enter it again and deploy`,
        ),
      );
      if (Object.keys(own).length > 0) {
        credentials[definition.id.toWellFormed()] = own;
      }
    }
  });
  const flowsText = JSON.stringify(flows);
  const credentialsText = JSON.stringify(credentials);
  const credentialsDigest = createHmac("sha256", secret).update(credentialsText).digest();
  const nodeTools = readNodeTools(RED, types, (warning) => warnings.push(warning));
  // A sidecar that knows no operations refuses the field.
  const toolsText = Object.keys(nodeTools).length === 0 ? "" : `,"nodeTools":${JSON.stringify(nodeTools)}`;
  const hash = createHash("sha256").update(flowsText).update(credentialsDigest).update(tooDeep?.text ?? "").update(toolsText);
  const revision = hash.digest("hex");
  const rest = `"revision":"${revision}","flows":${flowsText},"credentials":${credentialsText}${toolsText}}`;
  return { revision, rest, warnings, tooDeep };
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
