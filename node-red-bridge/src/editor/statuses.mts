// Shows the statuses of agents in the user's language. Node-RED brings the English text of a status, and a topic of ours its
// phrase. Never changes a status that has another text.

import type { Phrase } from "@redflow/bindings";
import { STATUS_LENGTH } from "../sentence.js";
import { cut } from "./dom.mjs";
import { phraseText } from "./phrases.mjs";

const [PHRASES, STATUSES] = ["redflow/status/", "status/"];

/** The English text of the last status of each agent, and its phrase. */
const known = new Map<string, { text: string; phrase: Phrase }>();

export function startStatuses(): void {
  RED.comms.subscribe(`${PHRASES}#`, (topic, message) => {
    const id = topic.slice(PHRASES.length);
    const { text, phrase } = (message ?? {}) as { text?: string; phrase?: Phrase };
    if (text === undefined || phrase === undefined) {
      known.delete(id);
    } else {
      known.set(id, { text, phrase });
      translate(id);
    }
  });
  // Node-RED subscribed before, so the node has its status.
  RED.comms.subscribe(`${STATUSES}#`, (topic) => translate(topic.slice(STATUSES.length)));
}

function translate(id: string): void {
  const [node, status] = [RED.nodes.node(id), known.get(id)];
  const shown = node?.["status"] as { text?: string } | undefined;
  if (node && status !== undefined && shown?.text === status.text) {
    shown.text = cut(phraseText(status.phrase, status.text), STATUS_LENGTH);
    node["dirtyStatus"] = true;
    node.dirty = true;
    RED.view.redrawStatus(node);
  }
}
