// The address of a page: the fragment. `/flows` and `/settings` are routes of the API, so the console uses the fragment, which
// also survives the redirect of the sign-in.

import { signal } from "@preact/signals";

/** The place that a fragment names. */
export interface Place {
  /** The path, decoded, such as `["runs", "019…"]`. */
  readonly path: readonly string[];
  /** The parameters, such as the filters of a list. */
  readonly query: Readonly<Record<string, string>>;
}

/** The longest fragment that is read. */
const MAX_FRAGMENT = 4_096;

/** Reads a fragment such as `#/runs?status=failed`. Text that cannot be decoded stays as it is. */
export function parsePlace(fragment: string): Place {
  const text = fragment.replace(/^#?\/?/, "").slice(0, MAX_FRAGMENT);
  const [path = "", query = ""] = text.split("?", 2);
  const pairs = query.split("&").filter((pair) => pair !== "");
  const entries = pairs.map((pair): [string, string] => {
    const at = pair.indexOf("=");
    return at < 0 ? [decode(pair), ""] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
  });
  return { path: path.split("/").filter((part) => part !== "").map(decode), query: Object.fromEntries(entries) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** The fragment of a place. Empty parameters are left out. */
export function formatPlace(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(value)}`],
  );
  return `#/${path.map(encodeURIComponent).join("/")}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}

/** Matches a pattern such as `runs/:id`. Undefined if the path is another one. */
export function matchRoute(pattern: string, path: readonly string[]): Record<string, string> | undefined {
  const parts = pattern.split("/").filter((part) => part !== "");
  const last = parts.at(-1);
  const isOptional = last?.endsWith("?") === true;
  if (path.length > parts.length || path.length < parts.length - (isOptional ? 1 : 0)) {
    return undefined;
  }
  const params: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const value = path[index];
    if (part.startsWith(":")) {
      if (value !== undefined) {
        params[part.replace(/^:|\?$/g, "")] = value;
      }
    } else if (part !== value) {
      return undefined;
    }
  }
  return params;
}

/** The place that the address names now. */
export const place = signal<Place>(parsePlace(""));

/** Follows the address of the window. */
export function startRouter(window: Window): void {
  const read = (): void => {
    place.value = parsePlace(window.location.hash);
  };
  window.addEventListener("hashchange", read);
  read();
}

/** Goes to a place, with an entry in the history. */
export function go(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): void {
  window.location.hash = formatPlace(path, query);
}

/** Changes the parameters of the current place without an entry in the history. */
export function replaceQuery(query: Readonly<Record<string, string | undefined>>): void {
  const fragment = formatPlace(place.value.path, query);
  window.history.replaceState(null, "", fragment);
  place.value = parsePlace(fragment);
}
