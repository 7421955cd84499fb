// Nodes that are a service of an agent: models, memories and tools that the sidecar runs. Owns what such a node does in
// Node-RED, which is nothing: its properties are read by the sidecar, and no message belongs here.

import { onInput } from "./guard";
import type { Red, RedNode, TypeOptions } from "./red";
import { registerNode } from "./register";

/** Registers the type of a service. `secrets` are its credentials, which never stand in the flow. */
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

/** Takes messages and does nothing with them. Says so once: a flow that sends many must not fill the log. */
function ignoreMessages(RED: Red, node: RedNode): void {
  let told = false;
  onInput(RED, node, (_message, _send, done) => {
    if (!told) {
      told = true;
      node.warn(
        `A message came to this ${node.type} and is ignored, and so are more of them: the sidecar uses the node when an ` +
          "agent is wired to it. Remove the wire it came by.",
      );
    }
    done();
  });
}
