// The built catalogues of the editor, and a fake of Node-RED's translation.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const locales = fileURLToPath(new URL("../../dist/editor/locales", import.meta.url));

export const LANGUAGES = readdirSync(locales).sort();

/** The namespace of the plugin: its module and its name. */
export const NAMESPACE = "@redflow/node-red-bridge/redflow-editor";

/** The texts of a language by key, such as `fields.missing`. */
export function catalogue(language) {
  const flat = new Map();
  const walk = (tree, path) => {
    for (const [name, value] of Object.entries(tree)) {
      if (typeof value === "string") {
        flat.set([...path, name].join("."), value);
      } else {
        walk(value, [...path, name]);
      }
    }
  };
  walk(JSON.parse(readFileSync(`${locales}/${language}/redflow-editor.json`, "utf8")), []);
  return flat;
}

/** Translates like `RED._`. Returns an unknown key as it is. */
export function translator(language) {
  const texts = catalogue(language);
  return (key, values = {}) => {
    const found = texts.get(key.slice(NAMESPACE.length + 1));
    return found === undefined ? key : found.replace(/__(\w+?)__/g, (place, name) => values[name] ?? place);
  };
}
