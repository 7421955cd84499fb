// The words of the editor as the tests see them: the catalogues as they are built, and Node-RED's way to fill them in.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const locales = fileURLToPath(new URL("../../dist/editor/locales", import.meta.url));

export const LANGUAGES = readdirSync(locales).sort();

/** The namespace of the plugin: its module and its name. */
export const NAMESPACE = "@redflow/node-red-bridge/redflow-editor";

/** By key, such as `fields.missing`. */
export function catalogue(language) {
  const flat = new Map();
  const walk = (tree, path) => {
    for (const [name, value] of Object.entries(tree)) {
      typeof value === "string" ? flat.set([...path, name].join("."), value) : walk(value, [...path, name]);
    }
  };
  walk(JSON.parse(readFileSync(`${locales}/${language}/redflow-editor.json`, "utf8")), []);
  return flat;
}

/** What Node-RED's `RED._` does with a key of ours. A key that is nowhere comes back as it is. */
export function translator(language) {
  const words = catalogue(language);
  return (key, values = {}) => {
    const found = words.get(key.slice(NAMESPACE.length + 1));
    return found === undefined ? key : found.replace(/__(\w+?)__/g, (place, name) => values[name] ?? place);
  };
}
