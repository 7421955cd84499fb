// Ports and wires by what they are for: colours, short labels at the ports of an agent, and the sentence at a wire that is
// refused. Owns how they look; draws nothing of Node-RED's anew, and judges no wire.

import { runsInSidecar } from "../node-definition.js";
import { onChecked, refusalOf, state } from "./checks.mjs";
import { wireKey } from "./checks-verdicts.mjs";

const SVG = "http://www.w3.org/2000/svg";

/** What a port or a wire is for, where that is not messages. */
type Kind = "model" | "tool" | "memory";

/** The outputs of agent-core, in order. They are called so in the checker's sentences and in every language. */
const AGENT_PORTS = ["model", "tool", "memory", "result", "model_response"] as const;

/** Junctions that are looked through to find where a wire comes from. */
const JUNCTIONS = 16;

/** Node-RED's word for the inputs of a node. */
const INPUT = 1;

/** Grows when wires or verdicts may be other ones than before. A mark of this age is right. */
let age = 1;
const marks = new WeakMap<Element, { age: number; kind: Kind | undefined; refusal: string | undefined }>();
let due = false;

export function startWires(): void {
  RED.hooks.add("viewAddPort.redflow", (event: PortEvent) => drawPort(event));
  // Wires have no hook of their own. They are drawn after the nodes, in the same turn: what is put off until its end
  // finds them, and nobody sees them without their marks.
  RED.hooks.add("viewRedrawNode.redflow", (_event: unknown) => {
    if (!due) {
      due = true;
      queueMicrotask(markWires);
    }
  });
  ["links:add", "links:remove", "workspace:clear"].forEach((event) => RED.events.on(event, () => (age += 1)));
  onChecked(() => {
    if (state().is !== "checking") {
      age += 1;
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
  const name = node.type === "agent-core" && portType === "output" ? AGENT_PORTS[portIndex] : undefined;
  if (name !== undefined && port.querySelector(".redflow-port-label") === null) {
    const label = document.createElementNS(SVG, "text");
    label.setAttribute("class", "redflow-port-label");
    label.setAttribute("x", "13");
    label.setAttribute("y", "3");
    label.textContent = name;
    port.append(label);
  }
}

/** What leaves an output. A service's own output goes back to the agent, with messages of the flow behind a tool. */
export function kindOfOutput(type: string, port: number): Kind | undefined {
  const name = type === "agent-core" ? AGENT_PORTS[port] : undefined;
  return name === "model" || name === "tool" || name === "memory" ? name : undefined;
}

/** What a node is to an agent. */
export function kindOfNode(type: string): Kind | undefined {
  const named = (kind: Kind): boolean => type.startsWith(`${kind}.`) || type.endsWith(`-${kind}`);
  return runsInSidecar(type) ? (["model", "memory", "tool"] as const).find(named) : undefined;
}

function markWires(): void {
  due = false;
  // A list that is alive begins anew with every class that is set: a copy is walked.
  const wires = [...document.getElementsByClassName("red-ui-flow-link")];
  for (const wire of wires) {
    const mark = marks.get(wire);
    if (mark?.age !== age) {
      markWire(wire as WireElement, mark?.kind, mark?.refusal);
    }
  }
}

interface WireElement extends SVGGElement {
  /** What d3 keeps there. */
  __data__?: EditorLink & { __ghost?: boolean; link?: boolean };
}

function markWire(wire: WireElement, oldKind: Kind | undefined, oldRefusal: string | undefined): void {
  const link = wire.__data__;
  const real = link !== undefined && !link.__ghost && !link.link;
  const kind = real ? kindOfWire(link) : undefined;
  const refusal = real ? refusalOf(wireKey(link.source.id, link.sourcePort, link.target.id)) : undefined;
  marks.set(wire, { age, kind, refusal });
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

/** The kind of the port a wire comes from, also through junctions, as long as there is one way back. */
function kindOfWire(link: EditorLink): Kind | undefined {
  let from = link;
  for (let seen = 0; seen < JUNCTIONS && from.source.type === "junction"; seen += 1) {
    const before = RED.nodes.getNodeLinks(from.source, INPUT);
    if (before[0] === undefined || before.length > 1) {
      return undefined;
    }
    from = before[0];
  }
  return kindOfOutput(from.source.type, from.sourcePort);
}
