// Where a sidecar is: the addresses at it, and its words without what only it may know. Opens no connection.

import { clipped } from "./failure";

/** Where the sidecar is. */
export interface Target {
  url: string;
  token: string;
}

/** Characters of a text that a sidecar says, or what is taken for one: it may say anything. */
export const SAID_LENGTH = 2_000;

/**
 * The address of a path at a sidecar, with the query of its URL and that of the path, which wins. None if the URL is no
 * HTTP. A password in the URL is for nobody: the token is what counts.
 */
export function addressAt(url: string, path: string): URL | undefined {
  let address: URL;
  try {
    address = new URL(url);
  } catch {
    return undefined;
  }
  if (address.protocol !== "http:" && address.protocol !== "https:") {
    return undefined;
  }
  const [route = "", query = ""] = path.split("?", 2);
  address.pathname = `${address.pathname.replace(/\/+$/, "")}${route}`;
  for (const [name, value] of new URLSearchParams(query)) {
    address.searchParams.set(name, value);
  }
  address.username = "";
  address.password = "";
  address.hash = "";
  return address;
}

/** What a sidecar says, as it may be shown: without the token, and no longer than people read. */
export function shown(text: string, token: string): string {
  return clipped(token === "" ? text : text.replaceAll(token, "…"), SAID_LENGTH);
}
