// How people know a node: by its name, else by its type. Ids are for programs.

import type { Phrase } from "@redflow/bindings";
import { clip } from "./failure";
import type { Red } from "./red";
import type { Sentence } from "./sentence";

/** Characters of a label. */
const LABEL_LENGTH = 60;

/** A sentence of the checker with labels in place of ids: it names a node without a name by its id. */
export function withLabels(RED: Pick<Red, "nodes">, sentence: string): string {
  return sentence.replace(/`([^`]{1,500})`/g, (quoted: string, id: string) => {
    const label = nodeLabel(RED, id);
    return label === undefined ? quoted : `\`${label.replaceAll("`", "'")}\``;
  });
}

/** The same for a sentence with its phrase. An argument of a phrase may be an id itself. */
export function sentenceWithLabels(RED: Pick<Red, "nodes">, { text, phrase }: Sentence): Sentence {
  const inArgs = ({ key, args }: Phrase): Phrase => {
    const labelled = Object.entries(args ?? {}).map(([name, arg]) => {
      return [name, typeof arg === "string" ? (nodeLabel(RED, arg) ?? withLabels(RED, arg)) : inArgs(arg)];
    });
    return { key, args: Object.fromEntries(labelled) as Phrase["args"] & object };
  };
  return { text: withLabels(RED, text), phrase: phrase === undefined ? undefined : inArgs(phrase) };
}

/** The label of a running node; undefined if there is none with this id. */
export function nodeLabel(RED: Pick<Red, "nodes">, id: string): string | undefined {
  const node = RED.nodes.getNode(id);
  return node === null ? undefined : clip(node.name || node.type, LABEL_LENGTH);
}
