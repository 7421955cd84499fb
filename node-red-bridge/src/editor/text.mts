// The words of the editor, in the language of the person. Owns where they are found; has none itself.

/** The catalogue of this module: see `locales`. */
const NAMESPACE = "@redflow/node-red-bridge/redflow-editor";

/** Texts without a value, by key. As many as the catalogue has: validators ask for them at every node and every change. */
const known = new Map<string, string>();

/**
 * A text of the catalogue. What belongs into it is put there as it is: i18next's own escaping is for HTML, and nothing
 * here becomes HTML.
 */
export function text(key: string, values?: Record<string, string | number>): string {
  const found = values === undefined ? known.get(key) : undefined;
  return found ?? translated(key, values);
}

function translated(key: string, values: Record<string, string | number> | undefined): string {
  const found = RED._(`${NAMESPACE}:${key}`, { ...values, interpolation: { escapeValue: false } } as never);
  // A key comes back as it is while the catalogue is not there.
  if (values === undefined && !found.endsWith(key)) {
    known.set(key, found);
  }
  return found;
}
