// Shared code of the dialogs of all Redflow nodes: fields whose value is not a text, and the problem below each field. Knows
// no node type. Shows texts of users only as text.

import { cut, untrusted } from "./dom.mjs";
import { type Verdict, isBlank, isReference, parse } from "./rules.mjs";
import { text } from "./text.mjs";
import { type Field, fieldOf, isCheckbox, isTouched, rememberValue } from "./touched-fields.mjs";

/** The prefix of a field's id. Config nodes have `node-config-input`. */
const PREFIX = "node-input";

/** The most characters of a value in an option or a note. */
const MAX_VALUE_CHARS = 60;

/** The value of a number field as it is saved: a number, or the text if it is not a number. */
export function asNumber(typed: unknown): number | string {
  const trimmed = String(typed).trim();
  return trimmed === "" || !Number.isFinite(Number(trimmed)) ? trimmed : Number(trimmed);
}

/** Saves the touched fields as numbers. Call it in `oneditsave`: Node-RED then finds them equal to their texts. */
export function saveNumbers(node: EditorNode, names: string[], prefix: string = PREFIX): void {
  for (const [name, field] of touchedFields(names, prefix)) {
    node[name] = asNumber(field.value);
  }
}

function touchedFields(names: string[], prefix: string = PREFIX): [string, Field][] {
  const fields = names.map((name): [string, Field | undefined] => [name, fieldOf(prefix, name)]);
  return fields.filter((entry): entry is [string, Field] => entry[1] !== undefined && isTouched(entry[1]));
}

/**
 * Prepares choices between yes, no and the default. The id of the select is `node-input-redflow-NAME`, because Node-RED would
 * save the value of its own field as text.
 */
export function prepareChoices(node: EditorNode, names: string[]): void {
  for (const name of names) {
    const field = fieldOf(PREFIX, name);
    if (field !== undefined) {
      const value = node[name];
      field.value = isBlank(value) ? "" : String(value);
      addOption(field, value);
    }
  }
}

export function saveChoices(node: EditorNode, names: string[]): void {
  for (const [name, { value }] of touchedFields(names)) {
    node[name] = value === "true" ? true : value === "false" ? false : value;
  }
}

/** Adds the flow's value to a select that does not offer it, such as `${NAME}`. */
function addOption(field: Field, value: unknown): void {
  if (!("options" in field) || isBlank(value) || typeof value === "object") {
    return;
  }
  const content = typeof value === "string" ? value : JSON.stringify(value);
  if (![...field.options].some((option) => option.value === content)) {
    const option = untrusted("option", content, { maxChars: MAX_VALUE_CHARS });
    option.value = content;
    field.append(option);
    field.value = content;
  }
}

/** Prepares the JSON textarea `node-input-redflow-NAME`, with a button that opens a larger editor. */
export function prepareJson(node: EditorNode, name: string): void {
  const area = $(`#${PREFIX}-redflow-${name}`);
  const value = node[name];
  area.val(isBlank(value) ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const larger = $("<button>", { type: "button", class: "red-ui-button red-ui-button-small" }).text(text("fields.larger"));
  larger.insertAfter(area).on("click", (event: Event) => {
    event.preventDefault();
    RED.editor.editJSON({
      value: area.val(),
      complete: (typed) => {
        area.val(typed).trigger("change");
      },
    });
  });
}

/** The value of a JSON text; the text itself if it is not JSON, so that no input is lost. */
export function jsonOf(typed: string): unknown {
  const { value, problem } = parse(typed);
  return problem === undefined ? value : typed.trim();
}

export function saveJson(node: EditorNode, name: string): void {
  for (const [, field] of touchedFields([name])) {
    node[name] = jsonOf(field.value);
  }
}

/**
 * Prepares the fields of a dialog: shows values of the flow that Node-RED would not show, shows the problem below each field,
 * and remembers the initial values. Call it last in `oneditprepare`.
 */
export function prepareFields(node: EditorNode, prefix: string = PREFIX): void {
  const { defaults, credentials = {} } = node._def;
  for (const [name, { type }] of Object.entries({ ...defaults, ...credentials })) {
    const field = fieldOf(prefix, name);
    if (field === undefined) {
      continue;
    }
    if (isCheckbox(field)) {
      prepareCheckbox(field, node[name]);
    } else if (type === undefined) {
      // Not for config nodes, whose options Node-RED sets, and not for secrets.
      addOption(field, node[name]);
    }
    rememberValue(field);
  }
  prepareParts(node, prefix);
  prepareProblems(node, prefix);
}

/**
 * Shows a part of a dialog only while a field has one of some values, as in `data-redflow-when="mode=remote|other"`. A field that the
 * flow does not have yet counts as its default.
 */
function prepareParts(node: EditorNode, prefix: string): void {
  for (const part of document.querySelectorAll<HTMLElement>("[data-redflow-when]")) {
    const [name = "", values = ""] = (part.dataset["redflowWhen"] ?? "").split("=");
    const field = $(`#${prefix}-${name}`);
    const show = (): void => {
      const value: unknown = field.val();
      part.hidden = !values.split("|").includes(String(isBlank(value) ? node._def.defaults[name]?.value : value));
    };
    field.on("change", show);
    show();
  }
}

/** Node-RED ticks a box for every text. The box of a variable is indeterminate until the user decides. */
function prepareCheckbox(box: HTMLInputElement, value: unknown): void {
  if (typeof value !== "string") {
    return;
  }
  box.checked = value === "true";
  if (isReference(value)) {
    box.indeterminate = true;
    const note = untrusted("div", text("fields.variable", { variable: cut(value, MAX_VALUE_CHARS) }), { class: "redflow-note" });
    box.closest(".form-row")?.append(note);
    box.addEventListener("change", () => note.remove());
  }
}

/**
 * Shows the problem below each field while the user types. Node-RED itself only colours the border and shows the reason in a
 * tooltip.
 */
function prepareProblems(node: EditorNode, prefix: string): void {
  const { defaults, credentials = {} } = node._def;
  // The node as it would be saved: the validation of a field may depend on another field.
  const typed: EditorNode = Object.create(node);
  const checks: (() => void)[] = [];
  $(`#${prefix}-name`).closest("form").addClass("redflow-form");
  for (const [name, definition] of Object.entries({ ...defaults, ...credentials })) {
    const [nodeRedField, ownField] = [$(`#${prefix}-${name}`), $(`#${prefix}-redflow-${name}`)];
    const field = ownField.length > 0 ? ownField : nodeRedField;
    if (field.length === 0) {
      continue;
    }
    const value = (): unknown => typedValue(node, name, prefix);
    const read = (): void => {
      // Nodes of the editor are proxies: an assignment would change the node itself.
      Object.defineProperty(typed, name, { value: value(), configurable: true, enumerable: true, writable: true });
    };
    if (definition.validate) {
      checks.push(addProblemLine(field, () => definition.validate?.call(typed, typed[name], {})));
    }
    read();
    field.on("input change", () => {
      read();
      checks.forEach((check) => check());
    });
  }
  checks.forEach((check) => check());
  // Open the sections with a problem.
  $(".redflow-problem").not(":empty").closest("details").prop("open", true);
}

/** The value of a property as the dialog would save it. */
export function typedValue(node: EditorNode, name: string, prefix: string = PREFIX): unknown {
  const field = fieldOf(prefix, name);
  if (field === undefined || (name in node._def.defaults && !isTouched(field))) {
    return node[name];
  }
  const isJson = field.tagName === "TEXTAREA" && field.id === `${prefix}-redflow-${name}`;
  return isJson ? jsonOf(field.value) : isCheckbox(field) ? field.checked : field.value;
}

/** Adds a line for the problem below a field. Also colours the border, which Node-RED does only for its own fields. */
function addProblemLine(field: any, check: () => unknown): () => void {
  const id = `${field.attr("id")}-problem`;
  const problem = $("<div>", { class: "redflow-problem", id, role: "status" }).appendTo(field.closest(".form-row"));
  // Keeps the label as the accessible name: Node-RED 5 would replace it with the problem, permanently.
  const label = `${field.attr("id")}-label`;
  $(`label[for="${field.attr("id")}"]`).attr("id", label);
  field.attr({ "aria-describedby": id, "aria-labelledby": label });
  return () => {
    const found = check();
    field.toggleClass("input-error", found !== true);
    field.attr("aria-invalid", String(found !== true));
    problem.text(typeof found === "string" ? found : "");
  };
}

/** Whether a value names a key node of this type, or none. */
export function keyVerdict(value: unknown, of: string): Verdict {
  const isNone = isBlank(value) || value === "_ADD_" || isReference(value);
  return isNone || RED.nodes.node(String(value))?.type === of ? true : text("fields.keyGone", { name: text("nodes.field.keyNode") });
}

/**
 * Shows where the key comes from while its field is empty: from the shared key, else from the sidecar's environment. The latter is
 * only for the provider itself, so not with the address of another server in the field `elsewhere`.
 */
export function noteKey(variable: string, elsewhere?: string): void {
  const [key, shared] = [$(`#${PREFIX}-apiKey`), $(`#${PREFIX}-keyNode`)];
  const other = $(`#${PREFIX}-${elsewhere ?? ""}`);
  const note = $("<div>", { class: "redflow-note" }).appendTo(key.closest(".form-row"));
  /** Whether each shared key has a key. */
  const stored = new Map<string, boolean>();
  const look = async (keyNode: EditorNode): Promise<void> => {
    const has = await hasKey(keyNode);
    if (stored.get(keyNode.id) !== has) {
      stored.set(keyNode.id, has);
      update();
    }
  };
  const update = (): void => {
    const keyNode = RED.nodes.node(String(shared.val() ?? ""));
    if (keyNode !== undefined) {
      void look(keyNode);
    }
    const source = keyNode === undefined ? "keyFrom" : (stored.get(keyNode.id) ?? true) ? "keyShared" : "keySharedEmpty";
    const isNeeded = isBlank(key.val()) && (keyNode !== undefined || elsewhere === undefined || isBlank(other.val()));
    note.text(text(`fields.${source}`, { variable })).toggle(isNeeded);
  };
  for (const field of [key, shared, other]) {
    field.on("input change", update);
  }
  update();
}

/** Whether a key node has a key. Until a dialog has loaded its credentials, only Node-RED knows. */
async function hasKey({ id, type, credentials }: EditorNode): Promise<boolean> {
  try {
    const known = credentials ?? ((await $.getJSON(`credentials/${type}/${encodeURIComponent(id)}`)) as Record<string, unknown>);
    return known["has_apiKey"] === true || !isBlank(known["apiKey"]);
  } catch {
    // The user may not read it.
    return true;
  }
}
