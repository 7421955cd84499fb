// The texts of the sidecar in the user's language. The catalogues have one text for each key of a phrase.

import type { Phrase, PhraseArg } from "@redflow/bindings";
import { text } from "./text.mjs";

/** The most levels of phrases inside phrases. */
const MAX_DEPTH = 8;

/** A text of the sidecar in the user's language; the English one if this palette does not know the phrase. */
export function phraseText(phrase: Phrase | undefined, english: string): string {
  return (phrase === undefined ? undefined : render(phrase, MAX_DEPTH)) ?? english;
}

function render({ key, args = {} }: Phrase, depth: number): string | undefined {
  const template = depth > 0 && /^\w+$/.test(key) ? templateOf(key) : undefined;
  // Values are inserted here and not by i18next, which would read references to other keys in them.
  const parts = template?.split(/(\{[a-z_]+\})/).map((part) => {
    const name = part.startsWith("{") ? part.slice(1, -1) : "";
    const arg: PhraseArg = Object.hasOwn(args, name) ? (args[name] ?? part) : part;
    return typeof arg === "string" ? arg : render(arg, depth - 1);
  });
  return parts === undefined || parts.includes(undefined) ? undefined : parts.join("");
}

/** The text of a key with its places; undefined if the catalogue has none. */
function templateOf(key: string): string | undefined {
  const found = text(`phrases.${key}`);
  return found.endsWith(`phrases.${key}`) ? undefined : found;
}
