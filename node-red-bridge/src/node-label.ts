// How people know a node: by its name, else by its type. Ids are for programs.

import { clip } from "./failure";
import type { Red } from "./red";

/** Characters of a label. */
const LABEL_LENGTH = 60;

/** A sentence of the checker with labels in place of ids: it names a node without a name by its id. */
export function withLabels(RED: Pick<Red, "nodes">, sentence: string): string {
  return sentence.replace(/`([^`]{1,500})`/g, (quoted: string, id: string) => {
    const label = nodeLabel(RED, id);
    return label === undefined ? quoted : `\`${label.replaceAll("`", "'")}\``;
  });
}

/** The label of a running node; undefined if there is none with this id. */
export function nodeLabel(RED: Pick<Red, "nodes">, id: string): string | undefined {
  const node = RED.nodes.getNode(id);
  return node === null ? undefined : clip(node.name || node.type, LABEL_LENGTH);
}
