// The operations that agents can call, from `redflow.tools` in the package.json of installed node packages. The files are
// strangers' files: read as data, bounded, never run. The sidecar checks the operations.

import { readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { OperationList } from "./admin-api";
import { clip } from "./failure";
import { isRecord } from "./record";
import type { Red } from "./red";
import { nodeSets } from "./register";
import { wellFormed } from "./well-formed";

/** The operations of node types: type, operation, definition. */
export type NodeTools = Record<string, Record<string, unknown>>;

/** How much of the packages' operations is read and sent. */
export const NODE_TOOLS_LIMITS = {
  /** Bytes of a package.json. */
  fileBytes: 1024 * 1024,
  /** Bytes of the operations of one package, and of all packages, as JSON. */
  packageBytes: 64 * 1024,
  totalBytes: 1024 * 1024,
  /** Operations of all packages. */
  operations: 512,
  /** Levels of one operation. */
  levels: 64,
  /** Folders above a node's file that are searched for its package.json. */
  folders: 16,
};

/** Characters of a name in a warning. */
const NAME_LENGTH = 100;

/**
 * The operations of the types that a flow uses. A package has operations for its own types only. `warn` gets a sentence
 * about everything that is left out.
 */
export function readNodeTools(
  RED: Red,
  types: Pick<ReadonlySet<string>, "has">,
  warn: (text: string) => void,
  limits = NODE_TOOLS_LIMITS,
): NodeTools {
  const tools = new Map<string, Record<string, unknown>>();
  let [operations, bytes] = [0, 0];
  for (const [module, list] of moduleList(RED)) {
    const sets = nodeSets(list).filter((set) => set.enabled);
    const own = new Set(sets.flatMap((set) => set.types));
    const file = sets.find((set) => set.file !== undefined && set.types.some((type) => types.has(type)))?.file;
    if (file === undefined) {
      continue;
    }
    const name = clip(module, NAME_LENGTH);
    const leaveOut = (reason: string): void => warn(`${name}: ${reason}`);
    const declared = declaredTools(module, file, limits, leaveOut);
    for (const [type, definitions] of Object.entries(declared)) {
      const isOwn = own.has(type) && !tools.has(type);
      if (!isOwn || !isRecord(definitions)) {
        const reason = isOwn ? "must be an object of operations" : "is not a type of this package";
        leaveOut(`\`${clip(type, NAME_LENGTH)}\` in \`redflow.tools\` ${reason}; it is left out`);
      } else if (types.has(type)) {
        const count = Object.keys(definitions).length;
        const size = Buffer.byteLength(JSON.stringify(definitions));
        if (operations + count > limits.operations || bytes + size > limits.totalBytes) {
          const most = `${limits.operations} operations and ${limits.totalBytes} bytes`;
          leaveOut(`the operations of ${clip(type, NAME_LENGTH)} are left out: all packages together may have ${most}`);
        } else if (count > 0) {
          tools.set(type, definitions);
          operations += count;
          bytes += size;
        }
      }
    }
  }
  return Object.fromEntries(tools);
}

/** The names and effects of the operations of all installed types, for the editor. */
export function listOperations(RED: Red): OperationList {
  const tools = readNodeTools(RED, { has: () => true }, () => undefined);
  const rows = Object.entries(tools).map(([type, operations]) => {
    const names = Object.entries(operations).map(([name, definition]) => {
      const effect = isRecord(definition) ? definition["effect"] : undefined;
      return { name, effect: typeof effect === "string" ? effect : "" };
    });
    return [type, names] as const;
  });
  return { operations: Object.fromEntries(rows) };
}

/** The installed modules in the order of their names; none if Node-RED does not list them. */
function moduleList(RED: Red): [string, unknown][] {
  try {
    const list = RED.settings.available() ? RED.settings.get("nodes") : undefined;
    return Object.entries(isRecord(list) ? list : {}).sort(([a], [b]) => (a < b ? -1 : 1));
  } catch {
    return [];
  }
}

/** `redflow.tools` of a package, as the sidecar can read it; nothing if it is missing or beyond the limits. */
function declaredTools(
  module: string,
  file: string,
  limits: typeof NODE_TOOLS_LIMITS,
  leaveOut: (reason: string) => void,
): Record<string, unknown> {
  try {
    const manifest = packageOf(module, file, limits);
    const redflow = manifest?.["redflow"];
    const tools = isRecord(redflow) ? redflow["tools"] : undefined;
    if (tools === undefined) {
      return {};
    }
    if (!isRecord(tools)) {
      throw new RangeError("it must be an object of node types");
    }
    // Around an operation are the object of types and the object of operations.
    const readable = wellFormed(tools, limits.levels + 2) as Record<string, unknown>;
    const size = Buffer.byteLength(JSON.stringify(readable));
    if (size > limits.packageBytes) {
      throw new RangeError(`it has ${size} bytes; the limit is ${limits.packageBytes}`);
    }
    return readable;
  } catch (problem) {
    leaveOut(`\`redflow.tools\` of its package.json is left out: ${(problem as Error).message}`);
    return {};
  }
}

/** The package.json of a module, in a folder above one of its files. */
function packageOf(module: string, file: string, limits: typeof NODE_TOOLS_LIMITS): Record<string, unknown> | undefined {
  let folder = dirname(file);
  for (let level = 0; level < limits.folders && basename(folder) !== "node_modules"; level += 1) {
    const path = join(folder, "package.json");
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile()) {
      if (stat.size > limits.fileBytes) {
        throw new RangeError(`the file has ${stat.size} bytes; the limit is ${limits.fileBytes}`);
      }
      const manifest: unknown = JSON.parse(readFileSync(path, "utf8"));
      if (isRecord(manifest) && manifest["name"] === module) {
        return manifest;
      }
    }
    folder = dirname(folder);
  }
  return undefined;
}
