// Registers the node types of this module, and says so when another module has one of them. Owns the list of types
// that are ours in this process; never takes a type from another module, and never breaks the loading of the palette.

import { guarded } from "./guard";
import type { NodeConstructor, Red, TypeOptions } from "./red";

/** The name this module is installed by. */
export const MODULE = "@redflow/node-red-bridge";

/** The types Node-RED has taken from this module. */
const ours = new Set<string>();

/** Whether nodes of a type are made by this module. */
export function isOurs(type: string): boolean {
  return ours.has(type);
}

/**
 * Registers a type, unless another module has it: then that one keeps it, and nothing of ours is registered for it.
 * Gives whether the type is ours.
 */
export function registerNode(
  RED: Red,
  type: string,
  constructor: NodeConstructor,
  options?: TypeOptions,
): boolean {
  // `registerType` writes the type's credentials before it finds out that the type is taken. So ask first.
  if (hasCredentials(RED, type)) {
    return false;
  }
  try {
    RED.nodes.registerType(type, constructor, options);
  } catch {
    return false;
  }
  ours.add(type);
  return true;
}

/** Whether a type with credentials is registered: a node that is made then has a place for them. */
function hasCredentials(RED: Red, type: string): boolean {
  const probe = { credentials: undefined, updateWires: () => undefined };
  try {
    RED.nodes.createNode(probe as never, { id: "redflow-bridge-probe", type });
  } catch {
    return false;
  }
  return probe.credentials !== undefined;
}

/** A type that two modules have, and which of them Node-RED took. */
export interface SharedType {
  type: string;
  other: string;
  ours: boolean;
}

/** Finds in Node-RED's list of modules the types that another module has too. */
export function sharedTypes(list: unknown, registered: (type: string) => boolean): SharedType[] {
  const modules = isRecord(list) ? list : {};
  const mine = new Map<string, boolean>();
  for (const set of sets(modules[MODULE])) {
    for (const type of set.types) {
      mine.set(type, set.enabled);
    }
  }
  const shared: SharedType[] = [];
  for (const [other, module] of Object.entries(modules)) {
    if (other === MODULE) {
      continue;
    }
    for (const set of sets(module)) {
      for (const type of set.enabled ? set.types : []) {
        if (mine.get(type)) {
          shared.push({ type, other, ours: registered(type) });
        }
      }
    }
  }
  return shared;
}

/** The sentence for the log. */
export function explainShared({ type, other, ours }: SharedType): string {
  return ours
    ? `${type}: the module ${other} has this type too. Node-RED took ours, so the one of ${other} is not loaded. ` +
        `Disable one of the two in the palette manager, or uninstall ${other}.`
    : `${type}: the module ${other} has registered this type already. ${MODULE} stands aside: nodes of this type are ` +
        `those of ${other}${type === "agent-core" ? ", and the Redflow sidecar does not run them" : ""}. Disable the type ` +
        `there in the palette manager, or uninstall ${other}, if ours is wanted.`;
}

/** How often to look whether Node-RED has written its list of modules, and how many times. */
const LOOK_EVERY_MS = 250;
const LOOKS = 40;

/**
 * Says once, when the palette has been loaded, which types another module has too. Called by the one type that no other
 * module has: for a type that is taken, Node-RED does not even load our script.
 */
export function reportSharedTypes(RED: Red, looks = LOOKS): void {
  const look = (): void => {
    const list = RED.settings.available() ? RED.settings.get("nodes") : undefined;
    if (!(isRecord(list) && list[MODULE] !== undefined) && looks > 1) {
      reportSharedTypes(RED, looks - 1);
      return;
    }
    for (const shared of sharedTypes(list, isOurs)) {
      RED.log.warn(`[${MODULE}] ${explainShared(shared)}`);
    }
  };
  setTimeout(() => guarded(RED, "types of two modules could not be looked for", look), LOOK_EVERY_MS).unref();
}

function sets(module: unknown): { types: string[]; enabled: boolean }[] {
  const nodes = isRecord(module) && isRecord(module["nodes"]) ? Object.values(module["nodes"]) : [];
  return nodes.filter(isRecord).map((set) => ({
    types: Array.isArray(set["types"]) ? set["types"].filter((type) => typeof type === "string") : [],
    enabled: set["enabled"] !== false,
  }));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
