// What a node is called on the canvas. Owns how long that may be: Node-RED makes a node as wide as its name.

import { plain } from "./checks-verdicts.mjs";
import { cut } from "./dom.mjs";
import { text } from "./text.mjs";

/** Characters of a name on the canvas. */
export const LABEL_CHARS = 60;

/** The first of the names that says something, else the words of the key. */
export function label(names: unknown[], key: string): string {
  const name = names.find((one) => typeof one === "string" && one.trim() !== "");
  // Cut twice: what makes a text plain need not look at all of a long one.
  return typeof name === "string" ? cut(plain(cut(name.trim(), 2 * LABEL_CHARS)), LABEL_CHARS) : text(key);
}
