// The tools of an MCP server that an mcp-client names: names and patterns with `*`, as the sidecar reads them. Pure.

/** The names and patterns in a property or a field: a list, or a text with commas. */
export function patternsOf(value: unknown): string[] {
  const parts: unknown[] = Array.isArray(value) ? value : typeof value === "string" ? value.split(",") : [];
  return parts.flatMap((part) => (typeof part === "string" && part.trim() !== "" ? [part.trim()] : []));
}

/** Whether a name is meant by a name or a pattern. */
export function matchesName(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) {
    return pattern === name;
  }
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) {
    return false;
  }
  // Each part between two stars follows the one before it.
  let from = first.length;
  const end = name.length - last.length;
  for (const part of rest) {
    const at = name.indexOf(part, from);
    if (at < 0 || at + part.length > end) {
      return false;
    }
    from = at + part.length;
  }
  return true;
}

/** How a tool stands in the fields *Tools* and *Without*. */
export interface ToolTick {
  isTicked: boolean;
  /** Whether a box cannot change it: a pattern, or *Without*, decides. */
  isFixed: boolean;
}

export function tickOf(name: string, include: string[], exclude: string[]): ToolTick {
  if (exclude.some((pattern) => matchesName(pattern, name))) {
    return { isTicked: false, isFixed: true };
  }
  const isNamed = include.some((pattern) => matchesName(pattern, name));
  const isAlone = include.length === 1 && include[0] === name;
  // An empty field means all tools. So the last name stays.
  return include.length === 0 ? { isTicked: true, isFixed: false } : { isTicked: isNamed, isFixed: (isNamed && !include.includes(name)) || isAlone };
}

/** The names in the field *Tools* after a box was ticked or cleared. `all` are the tools of the server. */
export function withTick(include: string[], name: string, isTicked: boolean, all: string[]): string[] {
  const before = include.length === 0 ? all : include;
  return isTicked ? [...before.filter((other) => other !== name), name] : before.filter((other) => other !== name);
}

/** The effect classes, the least strict one first. */
export const EFFECTS = ["read", "idempotent", "at_most_once"];

/**
 * The effect class that the field *Effects* gives a tool; undefined if it names none. A name counts before a pattern. Of several
 * patterns the most specific one counts, and of equally specific ones the strictest class.
 */
export function effectOf(effects: unknown, name: string): string | undefined {
  if (typeof effects !== "object" || effects === null || Array.isArray(effects)) {
    return undefined;
  }
  const rules = Object.entries(effects).flatMap(([pattern, effect]) => (typeof effect === "string" && matchesName(pattern, name) ? [{ pattern, effect }] : []));
  const [first] = rules.sort((one, other) => rank(other.pattern) - rank(one.pattern) || EFFECTS.indexOf(other.effect) - EFFECTS.indexOf(one.effect));
  return (rules.find(({ pattern }) => pattern === name) ?? first)?.effect;
}

/** How many characters of a pattern stand for themselves. The more there are, the more specific it is. */
function rank(pattern: string): number {
  return Array.from(pattern.replaceAll("*", "")).length;
}

/** What routes call the server of a node: its name, with the host and the path of its address if it has one. */
export function keyOf(name: string, address: string): string {
  if (name === "" || !URL.canParse(address)) {
    return name;
  }
  const { host, pathname } = new URL(address);
  // The sidecar shortens a long path. It finds the server by its name then.
  const isLong = host.length + pathname.length > MAX_PLACE;
  return isLong ? name : `${name}@${host}${pathname === "/" ? "" : pathname}`;
}

/** The most characters of the host and the path in a key. */
const MAX_PLACE = 200;
