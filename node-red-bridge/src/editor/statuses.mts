// Shows the statuses of agents in the user's language. Node-RED brings the English text of a status, and a topic of ours its
// phrase. Never changes a status that has another text.

import type { Phrase } from "@redflow/bindings";
import { statusText } from "../phrase-text.js";
import { templateOf } from "./phrases.mjs";

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
      translate(id, RED.nodes.node(id)?.["status"]);
    }
  });
  // Changes the message itself: all subscribers get the same one, and Node-RED makes it the status of the node.
  RED.comms.subscribe(`${STATUSES}#`, (topic, message) => translate(topic.slice(STATUSES.length), message));
}

function translate(id: string, status: unknown): void {
  const [found, shown] = [known.get(id), (status ?? {}) as { text?: unknown }];
  if (found === undefined || shown.text !== found.text) {
    return;
  }
  shown.text = statusText(found, templateOf);
  const node = RED.nodes.node(id);
  // Node-RED draws a status that it does not have yet.
  if (node?.["status"] === status) {
    RED.view.redrawStatus(node as EditorNode);
  }
}
