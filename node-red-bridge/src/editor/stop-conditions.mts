// The stop conditions in the dialog of an agent: their rows and their validation.

import { untrusted } from "./dom.mjs";
import { asNumber } from "./fields.mjs";
import { type Verdict, isObject, number } from "./rules.mjs";
import { text } from "./text.mjs";

/** A stop condition as it is saved. */
export interface StopCondition {
  type: string;
  value?: unknown;
}

const TYPES = ["confidence_threshold", "iteration_limit", "final_answer"];

/** The highest iteration of a condition: the largest 32-bit number. */
const MAX_ITERATION = 4_294_967_295;

/** The types with a value. */
const WITH_VALUE = ["confidence_threshold", "iteration_limit"];

/** The choice of a row whose condition has an unknown type. */
const UNCHANGED = "";

/** The most characters of an unknown condition. */
const MAX_UNKNOWN_CHARS = 60;

export interface StopsField {
  /** The conditions, if the user has changed one. */
  edited(): unknown[] | undefined;
}

/** An edited row as it is saved. Keeps the other properties of the condition. */
export function editedStop(before: unknown, type: string, typed: string): unknown {
  if (type === UNCHANGED) {
    return before;
  }
  const { value: _, ...rest } = isObject(before) ? before : {};
  return { ...rest, type, ...(WITH_VALUE.includes(type) && { value: asNumber(typed) }) };
}

function typeOf(stop: unknown): string {
  return isObject(stop) && TYPES.includes(String(stop["type"])) ? String(stop["type"]) : UNCHANGED;
}

/** Validates a list of stop conditions. The sentence contains no text of the flow. */
export function stopsVerdict(value: unknown): Verdict {
  const stops: unknown[] = Array.isArray(value) ? value : value === undefined || value === null ? [] : [undefined];
  for (const stop of stops as (Partial<StopCondition> | null | undefined)[]) {
    if (stop === null || typeof stop !== "object" || !TYPES.includes(String(stop.type))) {
      return text("agent.stops.unknown");
    }
    const found = valueVerdict(String(stop.type), stop.value);
    if (found !== true) {
      return found;
    }
  }
  return true;
}

function valueVerdict(type: string, value: unknown): Verdict {
  switch (type) {
    case "confidence_threshold":
      return number(value, { name: text("agent.stops.confidence"), min: 0, max: 1 });
    case "iteration_limit":
      return number(value, { name: text("agent.stops.iteration"), min: 1, max: MAX_ITERATION, whole: true });
    default:
      return true;
  }
}

/** Creates the rows in `list`, and shows their problem in `problem`. */
export function stopsField(list: any, problem: HTMLElement, value: unknown): StopsField {
  const first: unknown = { type: TYPES[0] };
  let isEdited = false;
  const rows = (): any[] => list.editableList("items").toArray().map((row: unknown) => $(row));
  // A removed row stays in the list until its animation ends.
  const isPresent = (row: any): boolean => !row.closest("li").hasClass("red-ui-editableList-item-deleting");
  const read = (): unknown[] => rows().filter(isPresent).map((row) => row.data("redflow-stop")());
  const validate = (): void => {
    const found = stopsVerdict(isEdited ? read() : value);
    problem.textContent = found === true ? "" : found;
  };
  const edit = (): void => {
    isEdited = true;
    validate();
  };
  list.css("min-height", "80px").editableList({
    removable: true,
    // No fixed height: the list is as high as its rows.
    height: 0,
    addItem: (row: any, _: number, { stop }: { stop?: unknown }) => {
      // A new row of the user has no condition.
      const before: unknown = stop === undefined ? first : stop;
      let current: unknown = before;
      row.data("redflow-stop", () => current);
      const type = $("<select>", { "aria-label": text("agent.stops.when") }).css("width", "68%").appendTo(row);
      if (typeOf(before) === UNCHANGED) {
        type.append(untrusted("option", describeUnknown(before), { maxChars: MAX_UNKNOWN_CHARS, attributes: { value: UNCHANGED } }));
      }
      for (const name of TYPES) {
        $("<option>").val(name).text(text(`agent.stops.type.${name}`)).appendTo(type);
      }
      const limit = $("<input>", { type: "text", inputmode: "decimal", "aria-label": text("agent.stops.value") });
      const value = isObject(before) ? (before["value"] ?? "") : "";
      limit.css({ width: "22%", marginLeft: "8px" }).appendTo(row);
      limit.val(typeof value === "string" ? value : JSON.stringify(value));
      const updateLimit = (): void => limit.toggle(WITH_VALUE.includes(type.val()));
      const editRow = (): void => {
        current = editedStop(before, type.val(), limit.val());
        updateLimit();
        edit();
      };
      type.val(typeOf(before)).on("change", editRow);
      limit.on("input", editRow);
      updateLimit();
      if (stop === undefined) {
        // Later, when the row is in the list.
        setTimeout(edit, 0);
      }
    },
    // Later, when the row is marked as removed.
    removeItem: () => setTimeout(edit, 0),
  });
  for (const stop of Array.isArray(value) ? value : []) {
    list.editableList("addItem", { stop: stop ?? null });
  }
  validate();
  return { edited: () => (isEdited || read().length < rows().length ? read() : undefined) };
}

function describeUnknown(stop: unknown): string {
  return isObject(stop) && typeof stop["type"] === "string" ? stop["type"] : (JSON.stringify(stop) ?? "");
}
