// The stop conditions in the dialog of an agent. Owns their rows and how they are read; other fields are the template's.

import { foreign } from "./dom.mjs";
import { asNumber } from "./fields.mjs";
import { type Verdict, isObject, number } from "./rules.mjs";
import { text } from "./text.mjs";

/** Why an agent stops beside a final answer, as it is saved. */
export interface StopCondition {
  type: string;
  value?: unknown;
}

const TYPES = ["confidence_threshold", "iteration_limit", "final_answer"];

/** The highest iteration a condition may name: a whole number of 32 bits. */
const MAX_ITERATION = 4_294_967_295;

/** Types with a value beside them. */
const WITH_VALUE = ["confidence_threshold", "iteration_limit"];

/** Chosen in a row whose condition is of no type that is known. */
const AS_IT_WAS = "";

/** Characters of a condition that is not known. */
const SHOWN_UNKNOWN = 60;

export interface StopsField {
  /** The conditions, if a person has changed one. */
  edited(): unknown[] | undefined;
}

/** A row that a person has edited, as it is saved. What else the flow says of it stays. */
export function editedStop(before: unknown, type: string, typed: string): unknown {
  if (type === AS_IT_WAS) {
    return before;
  }
  const { value: _, ...rest } = isObject(before) ? before : {};
  return { ...rest, type, ...(WITH_VALUE.includes(type) && { value: asNumber(typed) }) };
}

function typeOf(stop: unknown): string {
  return isObject(stop) && TYPES.includes(String(stop["type"])) ? String(stop["type"]) : AS_IT_WAS;
}

/** What is wrong with a list of stop conditions: true, or a sentence. No text of a flow is in it. */
export function stopsVerdict(value: unknown): Verdict {
  const stops: unknown[] = Array.isArray(value) ? value : value === undefined || value === null ? [] : [undefined];
  for (const stop of stops as (Partial<StopCondition> | null | undefined)[]) {
    if (stop === null || typeof stop !== "object" || !TYPES.includes(String(stop.type))) {
      return text("agent.stops.unknown");
    }
    const found = rule(String(stop.type), stop.value);
    if (found !== true) {
      return found;
    }
  }
  return true;
}

function rule(type: string, value: unknown): Verdict {
  switch (type) {
    case "confidence_threshold":
      return number(value, { name: text("agent.stops.confidence"), min: 0, max: 1 });
    case "iteration_limit":
      return number(value, { name: text("agent.stops.iteration"), min: 1, max: MAX_ITERATION, whole: true });
    default:
      return true;
  }
}

/** Makes the list in the element `list`, with what is wrong in `problem`. */
export function stopsField(list: any, problem: HTMLElement, value: unknown): StopsField {
  const first: unknown = { type: TYPES[0] };
  let isEdited = false;
  const rows = (): any[] => list.editableList("items").toArray().map((row: unknown) => $(row));
  // A row that was removed fades away before it is gone.
  const stays = (row: any): boolean => !row.closest("li").hasClass("red-ui-editableList-item-deleting");
  const read = (): unknown[] => rows().filter(stays).map((row) => row.data("redflow-stop")());
  const look = (): void => {
    const found = stopsVerdict(isEdited ? read() : value);
    problem.textContent = found === true ? "" : found;
  };
  const edit = (): void => {
    isEdited = true;
    look();
  };
  list.css("min-height", "80px").editableList({
    removable: true,
    // No height of its own: the list is as high as its rows.
    height: 0,
    addItem: (row: any, _: number, { stop }: { stop?: unknown }) => {
      // A row that a person adds comes without a condition.
      const before: unknown = stop === undefined ? first : stop;
      let now: unknown = before;
      row.data("redflow-stop", () => now);
      const type = $("<select>", { "aria-label": text("agent.stops.when") }).css("width", "68%").appendTo(row);
      if (typeOf(before) === AS_IT_WAS) {
        type.append(foreign("option", unknownWords(before), { most: SHOWN_UNKNOWN, attributes: { value: AS_IT_WAS } }));
      }
      for (const name of TYPES) {
        $("<option>").val(name).text(text(`agent.stops.type.${name}`)).appendTo(type);
      }
      const limit = $("<input>", { type: "text", inputmode: "decimal", "aria-label": text("agent.stops.value") });
      const shown = isObject(before) ? (before["value"] ?? "") : "";
      limit.css({ width: "22%", marginLeft: "8px" }).val(String(shown)).appendTo(row);
      const shape = (): void => limit.toggle(WITH_VALUE.includes(type.val()));
      const editRow = (): void => {
        now = editedStop(before, type.val(), limit.val());
        shape();
        edit();
      };
      type.val(typeOf(before)).on("change", editRow);
      limit.on("input", editRow);
      shape();
      if (stop === undefined) {
        // The row is in the list when this is over.
        setTimeout(edit, 0);
      }
    },
    // The row is there until the animation is over.
    removeItem: () => setTimeout(edit, 0),
  });
  for (const stop of Array.isArray(value) ? value : []) {
    list.editableList("addItem", { stop: stop ?? null });
  }
  look();
  return { edited: () => (isEdited || read().length < rows().length ? read() : undefined) };
}

function unknownWords(stop: unknown): string {
  return isObject(stop) && typeof stop["type"] === "string" ? stop["type"] : (JSON.stringify(stop) ?? "");
}
