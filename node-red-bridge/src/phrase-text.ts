// Phrases as texts, by the templates of one language. Shortens a text to what fits under a node. Knows no catalogue.

import type { Phrase, PhraseArg } from "@redflow/bindings";
import { STATUS_LENGTH, type Sentence } from "./sentence";

/** The most levels of phrases inside phrases. */
const MAX_DEPTH = 8;

/** Characters of a name in a status: the fewest to which it is cut, and those in a sentence that never fits. */
const [SHORTEST_NAME, NAME_LENGTH] = [5, 18];

/** The text of a key with its places; undefined if the catalogue has none. */
export type TemplateOf = (key: string) => string | undefined;

/** A phrase in the language of the templates; undefined if one of them is missing. */
export function renderPhrase(phrase: Phrase, templateOf: TemplateOf, maxName = Infinity): string | undefined {
  return render(phrase, { templateOf, maxName }, MAX_DEPTH);
}

/**
 * A sentence with at most STATUS_LENGTH characters. Cuts the names in it if the whole sentence fits then, so that what is
 * wrong stays readable. Else cuts long names, and the end.
 */
export function statusText({ text, phrase }: Sentence, templateOf: TemplateOf): string {
  const rendered = (maxName?: number): string => (phrase && renderPhrase(phrase, templateOf, maxName)) ?? text;
  let shown = rendered();
  for (let maxName = STATUS_LENGTH; shown.length > STATUS_LENGTH && maxName >= SHORTEST_NAME; maxName -= 1) {
    shown = rendered(maxName);
  }
  return shown.length > STATUS_LENGTH ? shorten(rendered(NAME_LENGTH), STATUS_LENGTH) : shown;
}

type Options = { templateOf: TemplateOf; maxName: number };

function render({ key, args = {} }: Phrase, options: Options, depth: number): string | undefined {
  const template = depth > 0 && /^\w+$/.test(key) ? options.templateOf(key) : undefined;
  // Values are inserted here and not by i18next, which would read references to other keys in them.
  const parts = template?.split(/(\{[a-z_]+\})/).map((part) => {
    const name = part.startsWith("{") ? part.slice(1, -1) : "";
    const arg: PhraseArg = Object.hasOwn(args, name) ? (args[name] ?? part) : part;
    if (typeof arg !== "string") {
      return render(arg, options, depth - 1);
    }
    // A part of a code would say nothing.
    return name === "" || name === "code" ? arg : shortenName(arg, options.maxName);
  });
  return parts === undefined || parts.includes(undefined) ? undefined : parts.join("");
}

/** Cuts a name. One in backticks keeps them. */
function shortenName(name: string, length: number): string {
  const [, quoted] = /^`(.+)`$/s.exec(name) ?? [];
  return quoted === undefined ? shorten(name, length) : `\`${shorten(quoted, length)}\``;
}

/** Cuts a text to this length with "…", without half a character at its end. */
function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, "")}…` : text;
}
