// The address of a sidecar and its token; texts of a sidecar without the token. Opens no connection.

import { clip } from "./failure";

/** The address and the token of a sidecar. */
export interface Target {
  url: string;
  token: string;
}

/** The most characters of a text from a sidecar, which may be another server that sends anything. */
export const MAX_REMOTE_TEXT = 2_000;

/**
 * The URL of a path at a sidecar, with the query of the base URL and that of the path, which wins. Undefined if the base
 * is not an HTTP URL. Drops a password in the URL: only the token authenticates.
 */
export function urlAt(base: string, path: string): URL | undefined {
  let url: URL;
  try {
    url = new URL(base);
  } catch {
    return undefined;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return undefined;
  }
  const [route = "", query = ""] = path.split("?", 2);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${route}`;
  for (const [name, value] of new URLSearchParams(query)) {
    url.searchParams.set(name, value);
  }
  url.username = "";
  url.password = "";
  url.hash = "";
  return url;
}

/** A text from a sidecar as users may see it: without the token, and cut. */
export function redact(text: string, token: string): string {
  return clip(token === "" ? text : text.replaceAll(token, "…"), MAX_REMOTE_TEXT);
}
