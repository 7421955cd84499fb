// Wires into agents that the checker has refused. A message on such a wire never reaches its agent, which reports an error
// instead. Owns the hook for that, which exists only while there are such wires. Never judges a wire itself.

import type { Diagnostic } from "@redflow/bindings";
import { agentErrors } from "./agent-errors";
import { Failure } from "./failure";
import { guard } from "./guard";
import { setHttpStatus } from "./http-status";
import type { Msg, Red, RedNode, SendEvent } from "./red";
import { type Sentence, sentence } from "./sentence";

/** How many wires the hook checks. Messages on further wires reach the sidecar, which refuses them too. */
const MAX_EDGES = 10_000;

const HOOK = "preRoute.redflow-bridge";

/** Refused wires, each with what happens to a message on it. */
type Edges = ReadonlyMap<string, Sentence>;

/** By the runtime whose sidecar refused them. */
const refusedBy = new Map<object, Edges>();
let hookAdded = false;

/** The refused wires of a report that lead to agents. */
export function refusedEdges(diagnostics: readonly Diagnostic[], isAgent: (id: string) => boolean): Edges {
  const edges = new Map<string, Sentence>();
  for (const { code, severity, message, messagePhrase, help, helpPhrase, node, port, target } of diagnostics) {
    const isRefused = severity === "error" && node !== null && port !== null && target !== null && isAgent(target.id);
    if (isRefused && edges.size < MAX_EDGES) {
      const values = {
        code: { text: code },
        message: { text: message, phrase: messagePhrase },
        help: { text: help, phrase: helpPhrase },
      };
      edges.set(keyOf(node.id, port, target.id), sentence("refused_wire", values));
    }
  }
  return edges;
}

/** The codes with which a refused agent fails every message. */
const REFUSAL_CODES = new Set<unknown>(["EDGE_REJECTED", "CONFIG_INVALID", "MODEL_KEY_MISSING", "NEEDS_NODE_RED"]);

/** Whether a message carries the error of an agent that has refused it. */
export function isRefusal({ error }: Msg): boolean {
  return typeof error === "object" && error !== null && REFUSAL_CODES.has((error as { code?: unknown }).code);
}

/** Warns that a refused agent drops a message that was refused before. A Catch node would send it round in a loop. */
export function dropRefusedAgain(agent: RedNode): void {
  const { text: message, phrase } = sentence("refused_again");
  agentErrors.add(agent.id, { code: "EDGE_REJECTED", message, phrase });
  agent.warn(`EDGE_REJECTED: ${message}`);
}

/** Sets the refused wires of a runtime. */
export function setRefusedEdges(RED: Red, owner: object, edges: Edges): void {
  if (edges.size === 0) {
    refusedBy.delete(owner);
  } else {
    refusedBy.set(owner, edges);
  }
  const needsHook = refusedBy.size > 0;
  if (needsHook !== hookAdded) {
    hookAdded = needsHook;
    if (needsHook) {
      RED.hooks.add(HOOK, (event) => (isDropped(RED, event) ? false : undefined));
    } else {
      RED.hooks.remove(HOOK);
    }
  }
}

function isDropped(RED: Red, event: SendEvent): boolean {
  const { source, destination, msg } = event;
  const key = keyOf(source.id, source.port, destination.id);
  for (const edges of refusedBy.values()) {
    const problem = edges.get(key);
    if (problem !== undefined) {
      guard(RED, `a refused message could not be reported at ${destination.id}`, () => {
        const agent = RED.nodes.getNode(destination.id);
        if (agent !== null && isRefusal(msg)) {
          dropRefusedAgain(agent);
        } else if (agent !== null) {
          const failure = new Failure("EDGE_REJECTED", problem.text);
          agentErrors.add(agent.id, { code: failure.code, message: failure.message, phrase: problem.phrase });
          // For Catch nodes. It does not fail the call that the message may belong to: its reply comes another way.
          // A copy: the nodes at other wires may get the same message.
          const failed = { ...msg };
          setHttpStatus(failed, failure.code);
          agent.error(failure, failed);
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
