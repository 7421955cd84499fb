// The label of a node on the canvas. Limits its length, because Node-RED makes a node as wide as its label.

import { plain } from "./checks-verdicts.mjs";
import { cut } from "./dom.mjs";
import { text } from "./text.mjs";

/** The most characters of a label. */
export const LABEL_CHARS = 60;

/** The first name that is not blank, else the text of the key. */
export function label(names: unknown[], key: string): string {
  const name = names.find((one) => typeof one === "string" && one.trim() !== "");
  return typeof name === "string" ? shorten(name) : text(key);
}

/** The label that the canvas shows: the node's name, else the label of its type. */
export function canvasLabel(node: EditorNode | null | undefined): string | undefined {
  if (!node) {
    return undefined;
  }
  const labels = [node.name, node._def?.label].map((one) => labelText(one, node));
  return shorten(labels.find((one) => one.trim() !== "") ?? node.type);
}

/** The text of a label. The label of a type may be a function of another module, which may throw. */
function labelText(one: unknown, node: EditorNode): string {
  try {
    const found: unknown = typeof one === "function" ? one.call(node) : one;
    return typeof found === "string" ? found : "";
  } catch {
    return "";
  }
}

function shorten(name: string): string {
  // Cut twice: `plain` would be slow for a very long text.
  return cut(plain(cut(name.trim(), 2 * LABEL_CHARS)), LABEL_CHARS);
}
