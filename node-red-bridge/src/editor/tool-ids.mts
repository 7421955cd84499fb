// Ids of tools such as `weather.current`, and patterns of ids such as `weather.*`. Pure.

/** The longest id or pattern. */
const MAX_LENGTH = 128;

/** Whether a text can be an id of a tool or a pattern, as the sidecar reads them. */
export function isToolPattern(text: string): boolean {
  return text.length <= MAX_LENGTH && /^(\*|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?)$/.test(text);
}

/** Whether a pattern names a tool: by its id, by the name that models use for it, or by its beginning. */
export function matchesTool(pattern: string, id: string): boolean {
  if (pattern.endsWith("*")) {
    return pattern === "*" || (pattern.endsWith(".*") && id.startsWith(pattern.slice(0, -1)));
  }
  return pattern === id || pattern === id.replaceAll(".", "__");
}

/** Whether one of the patterns names a tool. */
export function isNamed(patterns: string[], id: string): boolean {
  return patterns.some((pattern) => matchesTool(pattern, id));
}
