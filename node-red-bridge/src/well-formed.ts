// Text and nesting that the sidecar can read: only JavaScript accepts half characters in JSON.

/** Replaces half characters, which only JavaScript accepts in JSON. Throws if the value nests too deep. */
export function wellFormed(value: unknown, levels: number): unknown {
  if (typeof value === "string") {
    return value.toWellFormed();
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (levels === 0) {
    throw new RangeError("it nests too deep");
  }
  if (Array.isArray(value)) {
    return value.map((item) => wellFormed(item, levels - 1));
  }
  const entries = Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item, levels - 1)] as const);
  return Object.fromEntries(entries);
}
