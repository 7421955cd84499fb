// Which fields of a dialog the user has changed. Remembers the initial value of each field. The button Done then changes only
// touched properties: all others stay in the flow as they are, even if they are unusual. Saves nothing itself.

export type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** The value of each field when its dialog was opened. */
const initialValues = new WeakMap<Field, string | boolean>();

/** The field of a property: ours, which Node-RED ignores, or the one that Node-RED fills. */
export function fieldOf(prefix: string, name: string): Field | undefined {
  return byId(`${prefix}-redflow-${name}`) ?? byId(`${prefix}-${name}`);
}

function byId(id: string): Field | undefined {
  return (document.getElementById(id) as Field | null) ?? undefined;
}

/** Remembers the value of a field that shows the flow's value. Only the first call counts. */
export function rememberValue(field: Field): void {
  if (!initialValues.has(field)) {
    initialValues.set(field, valueOf(field));
  }
}

/** Whether the value of a field differs from that of the flow. */
export function isTouched(field: Field): boolean {
  return initialValues.get(field) !== valueOf(field);
}

/**
 * Keeps Node-RED from saving untouched fields: it would write `""` for a missing property, and true for a `${NAME}` in a
 * checkbox. Call it last in `oneditsave`. Works because Node-RED does not change a property without a field.
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

function valueOf(field: Field): string | boolean {
  if (!isCheckbox(field)) {
    return field.value;
  }
  // An indeterminate box stands for a variable.
  return field.indeterminate ? "" : field.checked;
}
