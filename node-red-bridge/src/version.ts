// The version of this module, as its package says it.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The version of this module. */
export const version = versionOf(join(__dirname, "..", "package.json")) ?? "unknown";

/** The version that a package says in its manifest. */
export function versionOf(manifest: string): string | undefined {
  try {
    const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version?: unknown };
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined;
  }
}
