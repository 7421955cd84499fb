// Whether a Catch node would handle the error of a node, by the rules of Node-RED. In doubt the answer is yes: then the
// call waits for its timeout, instead of failing while a Catch node is about to answer it.

import type { Definition, Red, RedNode } from "./red";

/** How many subflows or groups may be nested. */
const MAX_LEVELS = 100;

/** Whether a Catch node of the flow would handle an error of this node. */
export function wouldBeCaught(RED: Red, node: RedNode): boolean {
  const definitions = new Map<string, Definition>();
  RED.nodes.eachNode((definition) => definitions.set(definition.id, definition));
  return isCaught(definitions, node.id, node.z ?? "");
}

/** The same for a running node by its id and its `z`, the tab or subflow instance that holds it. */
export function isCaught(definitions: ReadonlyMap<string, Definition>, id: string, z: string): boolean {
  let [reporter, container] = [id, z];
  for (let level = 0; level < MAX_LEVELS; level += 1) {
    const own = definitionOf(definitions, reporter);
    if (own === undefined) {
      return true;
    }
    const catchNodes = [...definitions.values()].filter(
      (other) => other.type === "catch" && other.z === own.z && other["d"] !== true,
    );
    if (catchNodes.some((catchNode) => handles(definitions, catchNode, own))) {
      return true;
    }
    if (definitions.get(own.z ?? "")?.type !== "subflow") {
      return false;
    }
    // Inside a subflow the instance reports the error next. Its id is the `z` of the node.
    const instance = definitionOf(definitions, container);
    if (instance === undefined || !instance.type.startsWith("subflow:")) {
      return true;
    }
    reporter = container;
    container = container.slice(0, -instance.id.length - 1);
  }
  return true;
}

/** The definition of a running node: inside a subflow its id starts with the ids of the instances. */
function definitionOf(definitions: ReadonlyMap<string, Definition>, id: string): Definition | undefined {
  let tail = id;
  for (;;) {
    const found = definitions.get(tail);
    if (found !== undefined) {
      return found;
    }
    const dash = tail.indexOf("-");
    if (dash === -1) {
      return undefined;
    }
    tail = tail.slice(dash + 1);
  }
}

/** Whether the scope of a Catch node covers the node that reports the error. */
function handles(definitions: ReadonlyMap<string, Definition>, catchNode: Definition, reporter: Definition): boolean {
  const { scope } = catchNode;
  if (Array.isArray(scope)) {
    return scope.includes(reporter.id);
  }
  if (scope !== "group" || typeof catchNode["g"] !== "string") {
    return true;
  }
  let group = reporter["g"];
  for (let level = 0; typeof group === "string" && level < MAX_LEVELS; level += 1) {
    if (group === catchNode["g"]) {
      return true;
    }
    group = definitions.get(group)?.["g"];
  }
  return false;
}
