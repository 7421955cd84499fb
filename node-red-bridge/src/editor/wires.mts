// Marks ports and wires by their kind: colours, labels at the ports of an agent, and the sentence at a refused wire. Adds to
// Node-RED's drawing and replaces nothing. Checks no wire.

import { runsInSidecar } from "../node-definition.js";
import { type ServiceKind, bindsByInput, kindOfOutput, portName } from "../agent-ports.js";
import { onChecked, refusalOf, state } from "./checks.mjs";
import { wireKey } from "./checks-verdicts.mjs";

const SVG = "http://www.w3.org/2000/svg";

/** The most junctions between a wire and its source. */
const MAX_JUNCTIONS = 16;

/** Node-RED's number for the inputs of a node. */
const INPUT = 1;

/** Grows when wires or check results change. A mark of this generation is current. */
let generation = 1;
const marks = new WeakMap<Element, { generation: number; kind: ServiceKind | undefined; refusal: string | undefined }>();
let isScheduled = false;

export function startWires(): void {
  RED.hooks.add("viewAddPort.redflow", (event: PortEvent) => drawPort(event));
  // Wires have no hook. Node-RED draws them after the nodes in the same turn, so a microtask finds them before the browser
  // paints them without their marks.
  RED.hooks.add("viewRedrawNode.redflow", (_event: unknown) => {
    if (!isScheduled) {
      isScheduled = true;
      queueMicrotask(markWires);
    }
  });
  ["links:add", "links:remove", "workspace:clear"].forEach((event) => RED.events.on(event, () => (generation += 1)));
  onChecked(() => {
    if (state().is !== "checking") {
      generation += 1;
    }
  });
}

interface PortEvent {
  node: EditorNode;
  port: SVGGElement;
  portType: "input" | "output";
  portIndex: number;
}

function drawPort({ node, port, portType, portIndex }: PortEvent): void {
  const kind = portType === "output" ? kindOfOutput(node.type, portIndex) : kindOfNode(node.type);
  if (kind !== undefined) {
    port.classList.add("redflow-port", `redflow-port-${kind}`);
  }
  const name = portType === "output" ? portName(node.type, portIndex) : undefined;
  if (name !== undefined && port.querySelector(".redflow-port-label") === null) {
    const label = document.createElementNS(SVG, "text");
    label.setAttribute("class", "redflow-port-label");
    label.setAttribute("x", "13");
    label.setAttribute("y", "3");
    label.textContent = name;
    port.append(label);
  }
}

/** The kind of a service. */
export function kindOfNode(type: string): ServiceKind | undefined {
  const isNamed = (kind: ServiceKind): boolean => type.startsWith(`${kind}.`) || type.endsWith(`-${kind}`);
  return runsInSidecar(type) ? (["model", "memory", "tool"] as const).find(isNamed) : undefined;
}

function markWires(): void {
  isScheduled = false;
  // A copy, because a live collection is computed again after every change of a class.
  const wires = [...document.getElementsByClassName("red-ui-flow-link")];
  for (const wire of wires) {
    const mark = marks.get(wire);
    if (mark?.generation !== generation) {
      markWire(wire as WireElement, mark?.kind, mark?.refusal);
    }
  }
}

interface WireElement extends SVGGElement {
  /** The data of d3. */
  __data__?: EditorLink & { __ghost?: boolean; link?: boolean };
}

function markWire(wire: WireElement, oldKind: ServiceKind | undefined, oldRefusal: string | undefined): void {
  const link = wire.__data__;
  const isReal = link !== undefined && !link.__ghost && !link.link;
  const kind = isReal ? kindOfWire(link) : undefined;
  const refusal = isReal ? refusalOf(wireKey(link.source.id, link.sourcePort, link.target.id)) : undefined;
  marks.set(wire, { generation, kind, refusal });
  if (kind !== oldKind) {
    if (oldKind !== undefined) {
      wire.classList.remove(`redflow-wire-${oldKind}`);
    }
    if (kind !== undefined) {
      wire.classList.add(`redflow-wire-${kind}`);
    }
  }
  if (refusal !== oldRefusal) {
    wire.classList.toggle("redflow-wire-refused", refusal !== undefined);
    wire.querySelector(":scope > title")?.remove();
    if (refusal !== undefined) {
      const title = document.createElementNS(SVG, "title");
      title.textContent = refusal;
      wire.append(title);
    }
  }
}

/**
 * The kind of the port that a wire starts at, also through junctions with only one input wire. A wire from a service has a kind
 * only if it binds the service: other agents get replies by it, and the output of a flow tool leads to the nodes of the tool.
 */
function kindOfWire(link: EditorLink): ServiceKind | undefined {
  let from = link;
  for (let seen = 0; seen < MAX_JUNCTIONS && from.source.type === "junction"; seen += 1) {
    const before = RED.nodes.getNodeLinks(from.source, INPUT);
    if (before[0] === undefined || before.length > 1) {
      return undefined;
    }
    from = before[0];
  }
  return kindOfOutput(from.source.type, from.sourcePort) ?? (bindsByInput(link.target.type) ? kindOfNode(from.source.type) : undefined);
}
