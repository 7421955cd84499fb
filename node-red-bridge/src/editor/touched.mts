// Which fields of a dialog a person has touched. Owns what each field held when its dialog was filled, and that Done changes
// nothing else: what nobody has touched stays in the flow as it was written, however strange. Saves nothing itself.

/** A field as the page has it. */
export type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** What each field held when its dialog was filled. */
const filled = new WeakMap<Field, string | boolean>();

/** The field of a property: ours, which Node-RED does not know, or Node-RED's. */
export function fieldOf(prefix: string, name: string): Field | undefined {
  return byId(`${prefix}-redflow-${name}`) ?? byId(`${prefix}-${name}`);
}

function byId(id: string): Field | undefined {
  return (document.getElementById(id) as Field | null) ?? undefined;
}

/** To be called when a field shows what the flow says. The first time counts. */
export function remember(field: Field): void {
  if (!filled.has(field)) {
    filled.set(field, heldBy(field));
  }
}

/** Whether a field holds something else than the flow says. */
export function isTouched(field: Field): boolean {
  return filled.get(field) !== heldBy(field);
}

/**
 * Keeps Node-RED from saving the fields that nobody has touched: it would write `""` for what is not there, and true for a
 * `${NAME}` in a checkbox. To be called last in `oneditsave`. Node-RED leaves alone what it finds no field for.
 */
export function keepUntouched(node: EditorNode, prefix: string = "node-input"): void {
  for (const name of Object.keys({ ...node._def.defaults, ...node._def.credentials })) {
    const field = byId(`${prefix}-${name}`);
    if (field !== undefined && !isTouched(field)) {
      field.id = `${field.id}-untouched`;
    }
  }
}

export function isCheckbox(field: Field): field is HTMLInputElement {
  return field.type === "checkbox";
}

function heldBy(field: Field): string | boolean {
  if (!isCheckbox(field)) {
    return field.value;
  }
  // A box that says neither yes nor no stands for a variable.
  return field.indeterminate ? "" : field.checked;
}
