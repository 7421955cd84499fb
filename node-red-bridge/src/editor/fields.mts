// What the dialogs of all Redflow nodes share: fields whose value is no text, and below each field what is wrong with it.
// Knows no node type, and puts no text of a person into the page but as text.

import { cut, foreign } from "./dom.mjs";
import { isBlank, isReference, parse } from "./rules.mjs";
import { text } from "./text.mjs";
import { type Field, fieldOf, isCheckbox, isTouched, remember } from "./touched.mjs";

/** How the ids of a dialog's fields begin; those of config nodes with `node-config-input`. */
const FIELD = "node-input";

/** Characters of a value that no field has room for. */
const SHOWN_VALUE = 60;

/** What a field of a number holds, as it is saved: a number, or the text if it is none. */
export function asNumber(typed: unknown): number | string {
  const trimmed = String(typed).trim();
  return trimmed === "" || !Number.isFinite(Number(trimmed)) ? trimmed : Number(trimmed);
}

/** Saves as numbers the fields that were touched. To be called in `oneditsave`: Node-RED then finds them equal to their texts. */
export function saveNumbers(node: EditorNode, names: string[], prefix: string = FIELD): void {
  for (const [name, field] of touched(names, prefix)) {
    node[name] = asNumber(field.value);
  }
}

function touched(names: string[], prefix: string = FIELD): [string, Field][] {
  const fields = names.map((name): [string, Field | undefined] => [name, fieldOf(prefix, name)]);
  return fields.filter((entry): entry is [string, Field] => entry[1] !== undefined && isTouched(entry[1]));
}

/**
 * A choice between yes, no and the usual. Its select is `node-input-redflow-NAME`: Node-RED, which would
 * save a text, must not know it.
 */
export function prepareChoices(node: EditorNode, names: string[]): void {
  for (const name of names) {
    const field = fieldOf(FIELD, name);
    if (field !== undefined) {
      const value = node[name];
      field.value = isBlank(value) ? "" : String(value);
      offer(field, value);
    }
  }
}

export function saveChoices(node: EditorNode, names: string[]): void {
  for (const [name, { value }] of touched(names)) {
    node[name] = value === "true" ? true : value === "false" ? false : value;
  }
}

/** A select shows what the flow says, also if it is none of its choices, such as `${NAME}`. */
function offer(field: Field, value: unknown): void {
  const isNew = "options" in field && ![...field.options].some((option) => option.value === String(value));
  if (isNew && !isBlank(value) && typeof value !== "object") {
    const option = foreign("option", String(value), { most: SHOWN_VALUE });
    option.value = String(value);
    field.append(option);
    field.value = String(value);
  }
}

/** JSON in the textarea `node-input-redflow-NAME`, with a button that opens a larger editor. */
export function prepareJson(node: EditorNode, name: string): void {
  const area = $(`#${FIELD}-redflow-${name}`);
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

/** The value of a text; the text itself if it is no JSON, so that nothing typed is lost. */
export function jsonOf(typed: string): unknown {
  const { value, problem } = parse(typed);
  return problem === undefined ? value : typed.trim();
}

export function saveJson(node: EditorNode, name: string): void {
  for (const [, field] of touched([name])) {
    node[name] = jsonOf(field.value);
  }
}

/**
 * What all dialogs begin with: shows what the flow says where Node-RED would not, says below each field what is wrong with it,
 * and keeps in mind what nobody has touched. To be called last in `oneditprepare`.
 */
export function prepareFields(node: EditorNode, prefix: string = FIELD): void {
  const { defaults, credentials = {} } = node._def;
  for (const [name, { type }] of Object.entries({ ...defaults, ...credentials })) {
    const field = fieldOf(prefix, name);
    if (field === undefined) {
      continue;
    }
    if (isCheckbox(field)) {
      prepareBox(field, node[name]);
    } else if (type === undefined) {
      // The choices of configuration nodes are Node-RED's, and secrets are no choices.
      offer(field, node[name]);
    }
    remember(field);
  }
  prepareProblems(node, prefix);
}

/** Node-RED ticks a box for every text. One for a variable says neither yes nor no until somebody decides. */
function prepareBox(box: HTMLInputElement, value: unknown): void {
  if (typeof value !== "string") {
    return;
  }
  box.checked = value === "true";
  if (isReference(value)) {
    box.indeterminate = true;
    const note = foreign("div", text("fields.variable", { variable: cut(value, SHOWN_VALUE) }), { class: "redflow-note" });
    box.closest(".form-row")?.append(note);
    box.addEventListener("change", () => note.remove());
  }
}

/**
 * Says below each field what is wrong with it, while it is typed: Node-RED itself only makes its border red and says why
 * to those who point at it.
 */
function prepareProblems(node: EditorNode, prefix: string): void {
  const { defaults, credentials = {} } = node._def;
  // The node as it would be saved: what is wrong with one field may depend on another.
  const typed: EditorNode = Object.create(node);
  const looks: (() => void)[] = [];
  $(`#${prefix}-name`).closest("form").addClass("redflow-form");
  for (const [name, { validate }] of Object.entries({ ...defaults, ...credentials })) {
    const [plain, ours] = [$(`#${prefix}-${name}`), $(`#${prefix}-redflow-${name}`)];
    const field = ours.length > 0 ? ours : plain;
    if (field.length === 0) {
      continue;
    }
    const typedIn = (): unknown => (ours.is("textarea") ? jsonOf(ours.val()) : field.is(":checkbox") ? field.prop("checked") : field.val());
    const value = (): unknown => (name in defaults && !isTouched(field[0]) ? node[name] : typedIn());
    const read = (): void => {
      // Nodes of the editor are proxies: an assignment would go through to the node itself.
      Object.defineProperty(typed, name, { value: value(), configurable: true, enumerable: true, writable: true });
    };
    if (validate) {
      looks.push(watch(field, () => validate.call(typed, typed[name], {})));
    }
    read();
    field.on("input change", () => {
      read();
      looks.forEach((again) => again());
    });
  }
  looks.forEach((look) => look());
  // What is wrong must not be hidden.
  $(".redflow-problem").not(":empty").closest("details").prop("open", true);
}

/** Keeps the sentence below a field, and its border, which Node-RED colours only for the fields it knows. */
function watch(field: any, check: () => unknown): () => void {
  const id = `${field.attr("id")}-problem`;
  const problem = $("<div>", { class: "redflow-problem", id, role: "status" }).appendTo(field.closest(".form-row"));
  // Named by its label also while it is wrong: Node-RED 5 would call it by what is wrong with it, and go on so.
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

/**
 * Says where the key comes from while its field is empty. A key in the sidecar's environment is for the provider itself:
 * with an address of another server (`elsewhere`) it does not count.
 */
export function noteKey(variable: string, elsewhere?: string): void {
  const key = $(`#${FIELD}-apiKey`);
  const other = $(`#${FIELD}-${elsewhere ?? ""}`);
  const note = $("<div>", { class: "redflow-note" }).text(text("fields.keyFrom", { variable })).appendTo(key.closest(".form-row"));
  const look = (): void => {
    note.toggle(isBlank(key.val()) && (elsewhere === undefined || isBlank(other.val())));
  };
  key.on("input change", look);
  other.on("input change", look);
  look();
}
