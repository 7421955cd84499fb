// Sentences of the sidecar in the user's language. The palette's catalogues have one text for each key of a phrase.

import type { Diagnostic, Phrase } from "@redflow/bindings";
import { renderPhrase } from "../../../node-red-bridge/src/phrase-text.js";
import { findPhrase } from "../words.js";

/** A text of the sidecar in the user's language; the English one if the catalogue does not have the phrase. */
function phraseText(phrase: Phrase | undefined, english: string): string {
  return (phrase === undefined ? undefined : renderPhrase(phrase, findPhrase)) ?? english;
}

/** The sentence about a problem. */
export function messageOf({ message, messagePhrase }: Diagnostic): string {
  return phraseText(messagePhrase, message);
}

/** How to fix a problem. */
export function helpOf({ help, helpPhrase }: Diagnostic): string {
  return phraseText(helpPhrase, help);
}
