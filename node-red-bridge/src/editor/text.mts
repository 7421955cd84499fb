// The texts of the editor in the user's language, from the catalogues of Node-RED.

/** The namespace of this module's catalogue (see `locales`). */
const NAMESPACE = "@redflow/node-red-bridge/redflow-editor";

/** Cached texts without values. Validators need them at every node and every change. */
const cache = new Map<string, string>();

/**
 * A text of the catalogue. Inserts values without escaping: the escaping of i18next is for HTML, and no text here becomes
 * HTML.
 */
export function text(key: string, values?: Record<string, string | number>): string {
  const found = values === undefined ? cache.get(key) : undefined;
  return found ?? translate(key, values);
}

function translate(key: string, values: Record<string, string | number> | undefined): string {
  const found = RED._(`${NAMESPACE}:${key}`, { ...values, interpolation: { escapeValue: false } } as never);
  // Node-RED returns the key while the catalogue is not loaded.
  if (values === undefined && !found.endsWith(key)) {
    cache.set(key, found);
  }
  return found;
}
