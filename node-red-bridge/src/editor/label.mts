// What a node is called on the canvas. Owns how long that may be: Node-RED makes a node as wide as its name.

import { plain } from "./checks-verdicts.mjs";
import { cut } from "./dom.mjs";
import { text } from "./text.mjs";

/** Characters of a name on the canvas. */
export const LABEL_CHARS = 60;

/** The first of the names that says something, else the words of the key. */
export function label(names: unknown[], key: string): string {
  const name = names.find((one) => typeof one === "string" && one.trim() !== "");
  return typeof name === "string" ? short(name) : text(key);
}

/** What the canvas shows at a node: its name, else what its type says. */
export function canvasLabel(node: EditorNode | null | undefined): string | undefined {
  if (!node) {
    return undefined;
  }
  const shown = [node.name, node._def?.label].map((one) => said(one, node)).find((one) => one.trim() !== "");
  return short(shown ?? node.type);
}

/** Labels of types are anybody's code. */
function said(one: unknown, node: EditorNode): string {
  try {
    const found: unknown = typeof one === "function" ? one.call(node) : one;
    return typeof found === "string" ? found : "";
  } catch (_) {
    return "";
  }
}

function short(name: string): string {
  // Cut twice: what makes a text plain need not look at all of a long one.
  return cut(plain(cut(name.trim(), 2 * LABEL_CHARS)), LABEL_CHARS);
}
