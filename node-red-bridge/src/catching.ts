// Whether a Catch node would take the error of a node, by the rules of Node-RED. In doubt it says yes: then the call
// waits for its time to be over, instead of being answered while a Catch node is about to answer it.

import type { Definition, Red, RedNode } from "./red";

/** Subflows and groups inside each other, at most. */
const MAX_LEVELS = 100;

/** Whether a Catch node of the flow would take an error of this node. */
export function wouldBeCaught(RED: Red, node: RedNode): boolean {
  const definitions = new Map<string, Definition>();
  RED.nodes.eachNode((definition) => definitions.set(definition.id, definition));
  return isCaught(definitions, node.id, node.z ?? "");
}

/** The same, of a node by its id and its place while it runs. */
export function isCaught(definitions: ReadonlyMap<string, Definition>, id: string, place: string): boolean {
  let [reporter, inside] = [id, place];
  for (let level = 0; level < MAX_LEVELS; level += 1) {
    const own = definitionOf(definitions, reporter);
    if (own === undefined) {
      return true;
    }
    const catches = [...definitions.values()].filter(
      (other) => other.type === "catch" && other.z === own.z && other["d"] !== true,
    );
    if (catches.some((one) => takes(definitions, one, own))) {
      return true;
    }
    if (definitions.get(own.z ?? "")?.type !== "subflow") {
      return false;
    }
    // Inside a subflow the instance reports next; its id is what the node has for a tab.
    const instance = definitionOf(definitions, inside);
    if (instance === undefined || !instance.type.startsWith("subflow:")) {
      return true;
    }
    reporter = inside;
    inside = inside.slice(0, -instance.id.length - 1);
  }
  return true;
}

/** The definition of a node that runs: inside a subflow its id has those of the instances before it. */
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

function takes(definitions: ReadonlyMap<string, Definition>, one: Definition, reporter: Definition): boolean {
  const { scope } = one;
  if (Array.isArray(scope)) {
    return scope.includes(reporter.id);
  }
  if (scope !== "group" || typeof one["g"] !== "string") {
    return true;
  }
  let group = reporter["g"];
  for (let level = 0; typeof group === "string" && level < MAX_LEVELS; level += 1) {
    if (group === one["g"]) {
      return true;
    }
    group = definitions.get(group)?.["g"];
  }
  return false;
}
