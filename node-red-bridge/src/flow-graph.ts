// The nodes of the flow that run, and what their wires reach: through junctions, links and subflows, as the sidecar's checker
// follows them. Reads definitions, so it also knows a flow whose nodes do not exist yet. Checks nothing.

import { isRecord } from "./record";
import type { Definition } from "./red";

/** How many nodes a flow may have, and how many steps a search of wires may take. The sidecar refuses larger flows. */
const MAX_NODES = 200_000;
const MAX_STEPS = 5_000_000;

/** How many variables may refer to each other in a row. */
const MAX_HOPS = 10;

/** Entries of a flow that are no nodes. */
const STRUCTURE = new Set(["tab", "subflow", "group", "global-config"]);

/** The flow is larger than the sidecar takes. */
export class FlowTooLarge extends Error {}

/** A node on a tab or in an instance of a subflow. */
export interface FlowNode {
  /** In a subflow it begins with the id of the instance, as in Node-RED. */
  readonly id: string;
  readonly definition: Definition;
  readonly place: Place;
}

/** A tab, or an instance of a subflow. */
interface Place {
  /** What the ids of its nodes begin with. */
  readonly prefix: string;
  /** Its variables, the nearest ones first. */
  readonly env: readonly unknown[];
  readonly instance?: FlowNode;
  readonly template?: Definition;
}

/** The end of a wire at a port of a subflow. */
interface PortEnd {
  id: string;
  port: number;
}

/** A flow with its subflows expanded and without disabled nodes. */
export class FlowGraph {
  private readonly byId = new Map<string, FlowNode>();
  /** The insides of instances. */
  private readonly insides = new Map<FlowNode, Place>();
  private readonly templates = new Map<string, Definition>();
  private readonly members = new Map<string, Definition[]>();
  private readonly groups = new Map<string, Definition>();
  private readonly globalEnv: unknown[] = [];
  /** The link ins that name a link out. */
  private readonly linksInto = new Map<FlowNode, FlowNode[]>();
  private stepsLeft = MAX_STEPS;

  /** Throws `FlowTooLarge`. */
  constructor(definitions: readonly Definition[]) {
    const tabs = new Map<string, Place & { isOff: boolean }>();
    for (const definition of definitions) {
      const { id, type, env, disabled } = definition;
      if (type === "tab") {
        tabs.set(id, { prefix: "", env: listOf(env), isOff: disabled === true });
      } else if (type === "subflow") {
        this.templates.set(id, definition);
      } else if (type === "group") {
        this.groups.set(id, definition);
      } else if (type === "global-config") {
        this.globalEnv.push(...listOf(env));
      }
    }
    const root: Place & { isOff: boolean } = { prefix: "", env: [], isOff: false };
    const top: [Definition, Place][] = [];
    for (const definition of definitions.filter(({ type, d }) => !STRUCTURE.has(type) && d !== true)) {
      const z = definition.z ?? "";
      const place = tabs.get(z) ?? root;
      if (this.templates.has(z)) {
        append(this.members, z, definition);
      } else if (!place.isOff) {
        top.push([definition, place]);
      }
    }
    top.forEach(([definition, place]) => this.add(definition, place, []));
    for (const node of this.nodes("link in")) {
      for (const from of this.findAll(node.place, node.definition["links"]).filter(sends)) {
        append(this.linksInto, from, node);
      }
    }
  }

  /** All nodes, or those of a type. */
  nodes(type?: string): FlowNode[] {
    const all = [...this.byId.values()];
    return type === undefined ? all : all.filter(({ definition }) => definition.type === type);
  }

  /** The node that an id means for a node: one of the same instance of a subflow first. */
  find({ place }: Pick<FlowNode, "place">, id: string): FlowNode | undefined {
    return this.byId.get(place.prefix + id) ?? this.byId.get(id);
  }

  /** The nodes that a port reaches, or all ports, each once. */
  reached(from: FlowNode, port?: number): FlowNode[] {
    const found: FlowNode[] = [];
    const seen = new Set<FlowNode>();
    const queue = this.targets(from, port);
    for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
      this.count();
      if (!seen.has(node)) {
        seen.add(node);
        const next = this.passedOn(node);
        if (next === undefined) {
          found.push(node);
        } else {
          next.forEach((one) => queue.push(one));
        }
      }
    }
    return found;
  }

  /** The value of a property of a node, else of the option of the same name, with variables in place of `${NAME}`. */
  valueOf(node: FlowNode, property: string): unknown {
    const { options } = node.definition;
    const value = this.resolve(node, node.definition[property]);
    return isBlank(value) && isRecord(options) ? this.resolve(node, options[property]) : value;
  }

  private resolve(node: FlowNode, value: unknown): unknown {
    if (Array.isArray(value)) {
      return value.map((one) => this.resolve(node, one));
    }
    const name = nameOfVariable(value);
    return name === undefined ? value : (this.variable(node, name) ?? value);
  }

  /** The value of a variable as a node sees it, from its groups outwards. */
  private variable(node: FlowNode, name: string, hops = 0): unknown {
    const { env, instance } = node.place;
    const isOfParent = name.startsWith("$parent.");
    const own = isOfParent ? [] : [...this.groupsOf(node).map((group) => listOf(group["env"])), env];
    for (const list of own) {
      const entry = list.findLast((one) => isRecord(one) && one["name"] === name);
      const value = isRecord(entry) ? this.entry(node, entry, name, hops) : undefined;
      if (value !== undefined) {
        return value;
      }
    }
    const outer = isOfParent ? name.slice("$parent.".length) : name;
    if (instance !== undefined) {
      return this.variable(instance, outer, hops);
    }
    const entry = this.globalEnv.findLast((one) => isRecord(one) && one["name"] === outer);
    return (isRecord(entry) ? this.entry(node, entry, outer, hops) : undefined) ?? process.env[outer];
  }

  private entry(node: FlowNode, { type, value }: Record<string, unknown>, name: string, hops: number): unknown {
    if (type === "json") {
      return parseJson(value);
    }
    if (type !== "env") {
      return type === "cred" || type === "jsonata" ? undefined : value;
    }
    const target = nameOfVariable(value) ?? value;
    // A variable that refers to itself means the one further out.
    return typeof target === "string" && target !== name && hops < MAX_HOPS ? this.variable(node, target, hops + 1) : undefined;
  }

  /** The groups around a node, the nearest one first. */
  private groupsOf({ definition }: FlowNode): Definition[] {
    const found = new Set<Definition>();
    let group = this.groups.get(textOf(definition["g"]));
    while (group !== undefined && !found.has(group)) {
      found.add(group);
      group = this.groups.get(textOf(group["g"]));
    }
    return [...found];
  }

  /** Adds a node and, if it is an instance of a subflow, what is inside. `around` are the subflows around it. */
  private add(definition: Definition, place: Place, around: readonly string[]): void {
    const template = subflowOf(definition.type);
    if (template !== undefined && around.includes(template)) {
      return;
    }
    if (this.byId.size >= MAX_NODES) {
      throw new FlowTooLarge();
    }
    const node: FlowNode = { id: place.prefix + definition.id, definition, place };
    this.byId.set(node.id, node);
    const known = template === undefined ? undefined : this.templates.get(template);
    if (template !== undefined && known !== undefined) {
      // Of two variables with one name the last one counts: that of the instance.
      const env = [...listOf(known["env"]), ...listOf(definition["env"])];
      const inside: Place = { prefix: `${node.id}-`, env, instance: node, template: known };
      this.insides.set(node, inside);
      (this.members.get(template) ?? []).forEach((member) => this.add(member, inside, [...around, template]));
    }
  }

  private findAll(place: Place, ids: unknown): FlowNode[] {
    return listOf(ids).flatMap((id) => (typeof id === "string" ? (this.find({ place }, id) ?? []) : []));
  }

  /** The nodes at the wires of a port, or of all ports. An output of a subflow leads to the wires of the instance. */
  private targets({ definition, place }: FlowNode, port?: number): FlowNode[] {
    const ports = listOf(definition.wires);
    const own = this.findAll(place, port === undefined ? ports.flat() : ports[port]);
    return [...own, ...this.throughOutputs(place, (end) => end.id === definition.id && (port ?? end.port) === end.port)];
  }

  /** The nodes at the outputs of the subflow around a place that some ends lead to. */
  private throughOutputs({ template, instance }: Place, isMeant: (end: PortEnd) => boolean): FlowNode[] {
    const outputs = listOf(template?.["out"]);
    return outputs.flatMap((output, port) => {
      this.count();
      return instance !== undefined && endsOf(output).some(isMeant) ? this.targets(instance, port) : [];
    });
  }

  /** The nodes after one that passes messages on; undefined for a node that handles them. */
  private passedOn(node: FlowNode): FlowNode[] | undefined {
    const { definition, place } = node;
    const inside = this.insides.get(node);
    if (inside !== undefined) {
      const inputs = endsOf(listOf(inside.template?.["in"])[0]).map(({ id }) => id);
      const passed = this.throughOutputs(inside, ({ id }) => id === inside.template?.id);
      return [...this.findAll(inside, inputs), ...passed];
    }
    switch (definition.type) {
      case "junction":
      case "link in":
        return this.targets(node);
      case "link out": {
        const named = sends(node) ? this.findAll(place, definition["links"]) : [];
        return [...named.filter(({ definition: { type } }) => type === "link in"), ...(this.linksInto.get(node) ?? [])];
      }
      default:
        return undefined;
    }
  }

  private count(): void {
    this.stepsLeft -= 1;
    if (this.stepsLeft < 0) {
      throw new FlowTooLarge();
    }
  }
}

/** Whether a node is a link that sends to other links: a returning one goes back to its caller. */
function sends({ definition: { type, mode } }: FlowNode): boolean {
  return type === "link out" && mode !== "return";
}

/** The ends in an entry of a subflow's `in` or `out`. */
function endsOf(entry: unknown): PortEnd[] {
  const wires = isRecord(entry) ? listOf(entry["wires"]) : [];
  return wires.filter(isRecord).map(({ id, port }) => ({ id: textOf(id), port: typeof port === "number" ? port : 0 }));
}

/** The name in `${NAME}`, or the old `$(NAME)`. */
function nameOfVariable(value: unknown): string | undefined {
  const found = typeof value === "string" ? /^\$(?:\{(\S+)\}|\((\S+)\))$/.exec(value) : null;
  return found?.[1] ?? found?.[2];
}

function parseJson(value: unknown): unknown {
  try {
    return typeof value === "string" ? (JSON.parse(value) as unknown) : value;
  } catch {
    return undefined;
  }
}

function append<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) {
    lists.set(key, [value]);
  } else {
    list.push(value);
  }
}

function subflowOf(type: string): string | undefined {
  return type.startsWith("subflow:") ? type.slice("subflow:".length) : undefined;
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
