// The texts of the sidecar in the user's language. The catalogues have one text for each key of a phrase.

import type { Phrase } from "@redflow/bindings";
import { renderPhrase } from "../phrase-text.js";
import { text } from "./text.mjs";

/** A text of the sidecar in the user's language; the English one if this palette does not know the phrase. */
export function phraseText(phrase: Phrase | undefined, english: string): string {
  return (phrase === undefined ? undefined : renderPhrase(phrase, templateOf)) ?? english;
}

/** The text of a key with its places; undefined if the catalogue has none. */
export function templateOf(key: string): string | undefined {
  const found = text(`phrases.${key}`);
  return found.endsWith(`phrases.${key}`) ? undefined : found;
}
