// Nodes that are a service of an agent: models, memories and tools, and the config nodes with their keys. Such a node does
// nothing in Node-RED: the sidecar reads its properties and runs it.

import { onInput } from "./guard";
import type { Red, RedNode, TypeOptions } from "./red";
import { registerNode } from "./register";

/** Registers the type of a service or of a key node. `secrets` are its credentials, which Node-RED never writes into the flow. */
export function registerService(RED: Red, type: string, secrets: readonly string[] = []): void {
  const credentials = Object.fromEntries(secrets.map((name) => [name, { type: "password" as const }]));
  const options: TypeOptions = secrets.length > 0 ? { credentials } : {};
  registerNode(
    RED,
    type,
    function (definition) {
      RED.nodes.createNode(this, definition);
      ignoreMessages(RED, this);
    },
    options,
  );
}

/** Ignores messages. Warns only once: a flow that sends many must not fill the log. */
function ignoreMessages(RED: Red, node: RedNode): void {
  let warned = false;
  onInput(RED, node, (_message, _send, done) => {
    if (!warned) {
      warned = true;
      node.warn(
        `This ${node.type} ignores messages: the sidecar uses the node when an agent is wired to it. Remove the wire ` +
          "that the message came by.",
      );
    }
    done();
  });
}
