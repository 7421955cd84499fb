// The version of this module, from its package.json.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The version of this module. */
export const version = versionOf(join(__dirname, "..", "package.json")) ?? "unknown";

/** The version in a package.json; undefined if it cannot be read. */
export function versionOf(manifest: string): string | undefined {
  try {
    const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version?: unknown };
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined;
  }
}
