// Registers the node types of this module and logs which of them another module has too. Never takes a type from another
// module, and never breaks the loading of the palette.

import { guard } from "./guard";
import { isRecord } from "./record";
import type { NodeConstructor, Red, TypeOptions } from "./red";
import { AGENT_TYPES } from "./sidecar-types";

/** The npm name of this module. */
export const MODULE = "@redflow/node-red-bridge";

/** The types that Node-RED has accepted from this module. */
const registered = new Set<string>();

/** Whether Node-RED has accepted a type from this module. */
export function isRegistered(type: string): boolean {
  return registered.has(type);
}

/**
 * Registers a type, unless another module has it: then that module keeps it. Returns whether the type is registered by
 * this module.
 */
export function registerNode(
  RED: Red,
  type: string,
  constructor: NodeConstructor,
  options?: TypeOptions,
): boolean {
  // `registerType` overwrites the credentials of a type before it finds out that the type exists. So check first.
  if (hasCredentials(RED, type)) {
    return false;
  }
  try {
    RED.nodes.registerType(type, constructor, options);
  } catch {
    return false;
  }
  registered.add(type);
  return true;
}

/** Whether a type with credentials is registered: Node-RED then gives a new node a `credentials` property. */
function hasCredentials(RED: Red, type: string): boolean {
  const probe = { credentials: undefined, updateWires: () => undefined };
  try {
    RED.nodes.createNode(probe as never, { id: "redflow-bridge-probe", type });
  } catch {
    return false;
  }
  return probe.credentials !== undefined;
}

/** A type that two modules have. */
export interface SharedType {
  type: string;
  other: string;
  /** Whether Node-RED uses the type of this module. */
  ours: boolean;
}

/** The types in Node-RED's list of modules that another module has too. */
export function sharedTypes(list: unknown, isOurs: (type: string) => boolean): SharedType[] {
  const modules = isRecord(list) ? list : {};
  const enabledTypes = new Map<string, boolean>();
  for (const set of nodeSets(modules[MODULE])) {
    for (const type of set.types) {
      enabledTypes.set(type, set.enabled);
    }
  }
  const shared: SharedType[] = [];
  for (const [other, module] of Object.entries(modules)) {
    if (other === MODULE) {
      continue;
    }
    for (const set of nodeSets(module)) {
      for (const type of set.enabled ? set.types : []) {
        if (enabledTypes.get(type)) {
          shared.push({ type, other, ours: isOurs(type) });
        }
      }
    }
  }
  return shared;
}

/** The log line about a shared type. */
export function explainShared({ type, other, ours }: SharedType): string {
  return ours
    ? `${type}: the module ${other} has this type too. Node-RED uses ours and does not load the one of ${other}. ` +
        `Disable one of the two in the palette manager, or uninstall ${other}.`
    : `${type}: the module ${other} has registered this type already. ${MODULE} stands aside: nodes of this type are ` +
        `those of ${other}${AGENT_TYPES.includes(type) ? ", and the Redflow sidecar does not run them" : ""}. Disable the type ` +
        `there in the palette manager, or uninstall ${other}, if you want to use ours.`;
}

/** How often to check whether Node-RED has written its list of modules, and how many times. */
const CHECK_EVERY_MS = 250;
const CHECKS = 40;

/**
 * Logs once, after the palette has loaded, which types another module has too. The one type that no other module has calls
 * this: Node-RED does not even load our script for a type that another module has registered.
 */
export function reportSharedTypes(RED: Red, checks = CHECKS): void {
  const check = (): void => {
    const list = RED.settings.available() ? RED.settings.get("nodes") : undefined;
    if (!(isRecord(list) && list[MODULE] !== undefined) && checks > 1) {
      reportSharedTypes(RED, checks - 1);
      return;
    }
    for (const shared of sharedTypes(list, isRegistered)) {
      RED.log.warn(`[${MODULE}] ${explainShared(shared)}`);
    }
  };
  setTimeout(() => guard(RED, "types of two modules could not be searched", check), CHECK_EVERY_MS).unref();
}

/** Files of a module in Node-RED's list of modules, each with the types that it registers. */
export interface NodeSet {
  types: string[];
  enabled: boolean;
  file: string | undefined;
}

/** The files of a module in Node-RED's list of modules. */
export function nodeSets(module: unknown): NodeSet[] {
  const nodes = isRecord(module) && isRecord(module["nodes"]) ? Object.values(module["nodes"]) : [];
  return nodes.filter(isRecord).map((set) => ({
    types: Array.isArray(set["types"]) ? set["types"].filter((type) => typeof type === "string") : [],
    enabled: set["enabled"] !== false,
    file: typeof set["file"] === "string" ? set["file"] : undefined,
  }));
}
