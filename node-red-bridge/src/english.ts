// The English catalogue of the editor, for texts that Node-RED shows without an editor. Read once.

import { readFileSync } from "node:fs";
import { join } from "node:path";

let phrases: Record<string, string> | undefined;

/** The English text of a phrase with its places; undefined if the catalogue has none. */
export function englishTemplate(key: string): string | undefined {
  phrases ??= readPhrases();
  return Object.hasOwn(phrases, key) ? phrases[key] : undefined;
}

function readPhrases(): Record<string, string> {
  const file = join(__dirname, "editor", "locales", "en-US", "redflow-editor.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { phrases: Record<string, string> }).phrases;
}
