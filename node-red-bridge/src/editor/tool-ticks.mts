// Allows a tool when the user wires it to an agent, and forgets it when the user removes the wire. Only for agents with a list
// of allowed tools. Leaves imported and deployed flows as they are: there the list says what the author wanted.

import { adminApi } from "./admin-client.mjs";
import { type Operations, addName, describeTools, namesOf } from "./agent-tools.mjs";
import { toolsOf } from "./agent-wiring.mjs";
import { wiring } from "./editor-wiring.mjs";
import { isNamed } from "./tool-ids.mjs";

/** The names of the tools of each node that is connected to an agent. */
export type ConnectedTools = ReadonlyMap<string, readonly string[]>;

/** The allowed tools after a change of the wires or of a tool's name. A tool that the user unticked stays so. */
export function followWires(allowed: string[], before: ConnectedTools, after: ConnectedTools): string[] {
  const connected = new Set([...after.values()].flat());
  const gone = [...before.values()].flat().filter((name) => !connected.has(name));
  const added = [...after].flatMap(([id, names]) => {
    const old = before.get(id);
    const isFollowed = old === undefined || old.some((name) => gone.includes(name) && allowed.includes(name));
    return isFollowed ? names.filter((name) => !old?.includes(name)) : [];
  });
  const kept = allowed.filter((name) => !gone.includes(name));
  return added.reduce((names, name) => (isNamed(names, name) ? names : addName(names, name)), kept);
}

/** The events after which the tools of an agent may have changed. */
const EVENTS = ["links:add", "links:remove", "nodes:change", "flows:loaded", "deploy"];

/** The properties that give a tool its name. */
const NAMES = ["toolName", "name", "ids"];

/** The operations of installed nodes; undefined until a wire is drawn. */
let operations: Operations | undefined;
let known = new Map<string, ConnectedTools>();
/** The steps of the undo history that were there at the last update. One that comes back when the user takes a later one back is not new. */
const seen = new WeakSet<EditorHistoryEvent>();
let isScheduled = false;

export function startToolTicks(): void {
  const schedule = (): void => {
    if (!isScheduled) {
      isScheduled = true;
      // Node-RED records the change after it has sent the events.
      setTimeout(() => void update(), 0);
    }
  };
  EVENTS.forEach((event) => RED.events.on(event, schedule));
}

async function update(): Promise<void> {
  isScheduled = false;
  // Before the request: another change may come while it waits.
  const before = known;
  const event = RED.history.peek();
  const isNew = event !== undefined && !seen.has(event) && changesTools(event);
  RED.history.list().forEach((step) => seen.add(step));
  if (isNew) {
    operations ??= (await adminApi.operations().catch(() => ({ operations: {} }))).operations;
  }
  const after = connectedTools();
  known = after;
  if (!isNew) {
    return;
  }
  const added = new Set(eventsOf(event).flatMap(({ t, nodes }) => (t === "add" ? (nodes ?? []) : [])));
  const edits = [...after].flatMap(([id, tools]) => {
    const agent = RED.nodes.node(id);
    // A copied agent brings its list.
    return agent === undefined || added.has(id) ? [] : allowTools(agent, before.get(id) ?? new Map(), tools);
  });
  if (edits.length > 0) {
    record(event, edits);
  }
}

/** Whether a change of the user draws or removes wires, or renames a tool. */
function changesTools(event: EditorHistoryEvent): boolean {
  return eventsOf(event).some(({ t, changes }) => t === "add" || t === "delete" || (t === "edit" && NAMES.some((name) => name in (changes ?? {}))));
}

function eventsOf(event: EditorHistoryEvent): EditorHistoryEvent[] {
  return event.t === "multi" ? (event.events ?? []).flatMap(eventsOf) : [event];
}

/** The connected tools of every agent with a list of allowed tools. */
function connectedTools(): Map<string, ConnectedTools> {
  const found = new Map<string, ConnectedTools>();
  RED.nodes.eachNode((agent) => {
    if (agent._def?.defaults !== undefined && "allowedTools" in agent._def.defaults) {
      const tools = toolsOf(agent, wiring).map((node): [string, string[]] => {
        const described = describeTools(node, operations ?? {}).filter(({ nameVerdict }) => nameVerdict === true);
        return [node.id, described.map(({ name }) => name)];
      });
      found.set(agent.id, new Map(tools));
    }
  });
  return found;
}

function allowTools(agent: EditorNode, before: ConnectedTools, after: ConnectedTools): EditorHistoryEvent[] {
  const value = agent["allowedTools"];
  if (value !== undefined && value !== null && !Array.isArray(value)) {
    return [];
  }
  const allowed = namesOf(value);
  const next = followWires(allowed, before, after);
  if (next.join("\n") === allowed.join("\n")) {
    return [];
  }
  const edit = { t: "edit", node: agent, changes: { allowedTools: value }, changed: agent.changed === true, dirty: RED.nodes.dirty() };
  agent["allowedTools"] = next;
  agent.changed = true;
  agent.dirty = true;
  RED.editor.validateNode(agent);
  return [edit];
}

/** Makes one step of the undo history of the user's change and these edits. */
function record(event: EditorHistoryEvent, edits: EditorHistoryEvent[]): void {
  if (RED.history.peek() === event) {
    const step = { t: "multi", events: [event, ...edits], dirty: event.dirty ?? false };
    seen.add(step);
    RED.history.replace(step);
  } else {
    for (const edit of edits) {
      seen.add(edit);
      RED.history.push(edit);
    }
  }
  RED.view.redraw();
}
