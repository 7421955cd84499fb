// Wires into agents that the checker has refused: a message on one never gets to its agent, which says so instead. Owns
// the hook for that, which is there only while there are such wires; never judges a wire itself.

import type { Diagnostic } from "@redflow/bindings";
import { errors } from "./errors";
import { Failure } from "./failure";
import { guarded } from "./guard";
import type { Msg, Red, RedNode, SendEvent } from "./red";

/** Wires that are watched. Beyond them the sidecar itself refuses what comes: the agent is not ready. */
const MAX_EDGES = 10_000;

const HOOK = "preRoute.redflow-bridge";

/** Refused wires, and what is wrong with them. */
type Edges = ReadonlyMap<string, string>;

/** By the runtime whose sidecar refused them. */
const refused = new Map<object, Edges>();
let hooked = false;

/** The wires of a report that lead to agents of ours. */
export function edgesOf(diagnostics: readonly Diagnostic[], isAgent: (id: string) => boolean): Edges {
  const edges = new Map<string, string>();
  for (const { code, severity, message, help, node, port, target } of diagnostics) {
    const leads = severity === "error" && node !== null && port !== null && target !== null && isAgent(target.id);
    if (leads && edges.size < MAX_EDGES) {
      edges.set(keyOf(node.id, port, target.id), `${code}: ${message}. ${help}`);
    }
  }
  return edges;
}

/** What agents that are refused say to every message. */
const REFUSALS = new Set<unknown>(["EDGE_REJECTED", "CONFIG_INVALID", "NEEDS_NODE_RED"]);

/** Whether a message says that an agent has refused it. Of those, an agent that is refused itself takes none. */
export function isRefusal({ error }: Msg): boolean {
  return typeof error === "object" && error !== null && REFUSALS.has((error as { code?: unknown }).code);
}

/** Says that a refused message is not refused again. Not to Catch nodes: by them it would go round and round. */
export function endRefusal(agent: RedNode): void {
  const message = "a message that an agent had refused already has come to this agent, which is refused too, and was dropped";
  errors.note(agent.id, { code: "EDGE_REJECTED", message });
  agent.warn(`EDGE_REJECTED: ${message}`);
}

/** From now on these wires are refused for a runtime, and no others. */
export function refuse(RED: Red, owner: object, edges: Edges): void {
  if (edges.size === 0) {
    refused.delete(owner);
  } else {
    refused.set(owner, edges);
  }
  const wanted = refused.size > 0;
  if (wanted !== hooked) {
    hooked = wanted;
    if (wanted) {
      RED.hooks.add(HOOK, (event) => (isDropped(RED, event) ? false : undefined));
    } else {
      RED.hooks.remove(HOOK);
    }
  }
}

function isDropped(RED: Red, event: SendEvent): boolean {
  const { source, destination, msg } = event;
  const key = keyOf(source.id, source.port, destination.id);
  for (const edges of refused.values()) {
    const why = edges.get(key);
    if (why !== undefined) {
      guarded(RED, `a message that was refused could not be reported at ${destination.id}`, () => {
        const agent = RED.nodes.getNode(destination.id);
        if (agent !== null && isRefusal(msg)) {
          endRefusal(agent);
        } else if (agent !== null) {
          const failure = new Failure("EDGE_REJECTED", `a message came by a wire that is refused, and was dropped: ${why}`);
          errors.note(agent.id, failure);
          // For Catch nodes. Not as the failure of a call that the message may belong to: that comes back elsewhere.
          agent.error(failure, msg);
        }
      });
      return true;
    }
  }
  return false;
}

function keyOf(from: string, port: number, to: string): string {
  return `${port} ${from} ${to}`;
}
