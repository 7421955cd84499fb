// English texts with the phrases by which the editor shows them in the user's language.

import type { Phrase } from "@redflow/bindings";

/** Characters of a status: more does not fit under a node. The tab Errors has the whole sentence. */
export const STATUS_LENGTH = 40;

/** A text in English, and its phrase if the editor's catalogues have it. */
export interface Sentence {
  text: string;
  phrase?: Phrase | undefined;
}

/** The phrases that only the palette uses, in English. The sidecar declares the others. */
export const ENGLISH = {
  status_connecting: "connecting",
  status_connecting_waiting: "connecting ({waiting} waiting)",
  status_away: "sidecar away: {reason}",
  status_away_waiting: "sidecar away: {reason} ({waiting} waiting)",
  status_not_ready: "the agent is not ready",
  refused_wire: "dropped a message from a refused wire: {code}: {message}. {help}",
  refused_again: "dropped a message that an agent had refused already, because this agent is refused too",
  no_runtime: "the agent has no runtime; choose a redflow-runtime in it and deploy",
} as const;

/** Fills in a phrase of the palette. */
export function sentence(key: keyof typeof ENGLISH, values: Record<string, Sentence> = {}): Sentence {
  const text = ENGLISH[key].replace(/\{(\w+)\}/g, (place, name: string) => values[name]?.text ?? place);
  const args = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.phrase ?? value.text]));
  return { text, phrase: { key, args } };
}
