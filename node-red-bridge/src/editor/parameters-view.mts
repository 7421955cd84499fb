// The table of a tool's parameters in its dialog, with the JSON Schema behind a second tab. The field of the schema is what is
// saved: the table only writes into it.

import { createTabs } from "./agent-tabs.mjs";
import { button, element } from "./dom.mjs";
import { MAX_PARAMETERS, type Parameter, TYPES, haveNames, parametersOf, schemaWith } from "./parameters.mjs";
import { isBlank, parse } from "./rules.mjs";
import { text } from "./text.mjs";

/** Adds the table to the field of a schema. Call it after `prepareJson`. */
export function prepareParameters(name: string): void {
  const area = document.getElementById(`node-input-redflow-${name}`) as HTMLTextAreaElement | null;
  const row = area?.closest<HTMLElement>(".form-row");
  if (area === null || !row) {
    return;
  }
  const [host, table, json] = [element("div"), element("div"), element("div")];
  [table.id, json.id] = [`${area.id}-table`, `${area.id}-json`];
  const hint = element("div", { class: "redflow-hint", text: text("fields.parameters.beyond") });
  json.append(...[...row.childNodes].filter((child) => child instanceof HTMLElement && child.tagName !== "LABEL"));
  json.prepend(hint);
  row.append(host, table, json);
  const view = parametersView(table, (write) => {
    area.value = JSON.stringify(write(schemaOf(area.value)), null, 2);
    $(area).trigger("change");
  });
  const tabs = createTabs(
    host,
    [
      { id: "table", label: text("fields.parameters.table"), panel: table },
      { id: "json", label: text("fields.parameters.json"), panel: json },
    ],
    parametersOf(schemaOf(area.value)) === undefined ? "json" : "table",
    (id) => {
      const parameters = parametersOf(schemaOf(area.value));
      hint.hidden = parameters !== undefined;
      if (id === "table" && parameters !== undefined) {
        view.show(parameters);
      } else if (id === "table") {
        // After this click: the tab with the schema says why.
        queueMicrotask(() => tabs.show("json"));
      }
    },
  );
}

/** The schema in the field; undefined if it is empty. A text that is not JSON is no schema that the table can show. */
function schemaOf(source: string): unknown {
  const { value, problem } = isBlank(source) ? { value: undefined, problem: undefined } : parse(source);
  return problem === undefined ? value : source;
}

type Write = (schema: unknown) => Record<string, unknown>;

/** Creates the table in `host`. Calls `onChange` with a function that writes the rows into a schema. */
function parametersView(host: HTMLElement, onChange: (write: Write) => void): { show(parameters: Parameter[]): void } {
  let rows: Parameter[] = [];
  const list = element("div", { class: "redflow-parameters" });
  const empty = element("p", { class: "redflow-hint", text: text("fields.parameters.none") });
  const problem = element("div", { class: "redflow-problem", attributes: { role: "status" } });
  const add = button(text("fields.parameters.add"), () => {
    rows.push({ name: "", type: TYPES[0], description: "", required: true, rest: {} });
    draw();
    list.querySelector<HTMLInputElement>(".redflow-parameter:last-child input")?.focus();
  });
  host.append(empty, list, problem, add);

  function changed(): void {
    problem.textContent = haveNames(rows) ? "" : text("fields.parameters.unnamed");
    onChange((schema) => schemaWith(schema, rows));
  }

  function draw(): void {
    list.replaceChildren(...(rows.length > 0 ? [headOf()] : []), ...rows.map(rowOf));
    empty.hidden = rows.length > 0;
    add.hidden = rows.length >= MAX_PARAMETERS;
  }

  function headOf(): HTMLElement {
    const titles = ["name", "type", "description", "required"].map((key) => element("span", { text: text(`fields.parameters.${key}`) }));
    return element("div", { class: "redflow-parameter redflow-parameter-head", attributes: { "aria-hidden": "true" } }, ...titles);
  }

  function rowOf(parameter: Parameter): HTMLElement {
    const name = textField(parameter, "name");
    const type = element("select", {}, ...TYPES.map((type) => optionOf(type)));
    type.value = parameter.type;
    type.addEventListener("change", () => {
      parameter.type = type.value;
      changed();
    });
    const required = element("input", { attributes: { type: "checkbox" } });
    required.checked = parameter.required;
    required.addEventListener("change", () => {
      parameter.required = required.checked;
      changed();
    });
    const remove = button("", () => {
      rows = rows.filter((other) => other !== parameter);
      draw();
      changed();
      add.focus();
    }, { title: text("fields.parameters.remove") });
    const icon = element("i", { class: "fa fa-remove", attributes: { "aria-hidden": "true" } });
    remove.append(icon, element("span", { class: "redflow-unseen", text: text("fields.parameters.remove") }));
    const others = Object.keys(parameter.rest).slice(0, 8).join(", ");
    const hint = others === "" ? undefined : element("div", { class: "redflow-hint redflow-foreign", text: text("fields.parameters.others", { keywords: others.slice(0, 120) }) });
    const fields = [
      labelled("name", name),
      labelled("type", type),
      labelled("description", textField(parameter, "description")),
      labelled("required", required),
    ];
    return element("div", { class: "redflow-parameter" }, ...fields, remove, hint);
  }

  function textField(parameter: Parameter, key: "name" | "description"): HTMLInputElement {
    const field = element("input", { attributes: { type: "text" } });
    field.value = parameter[key];
    field.addEventListener("input", () => {
      parameter[key] = key === "name" ? field.value.trim() : field.value;
      changed();
    });
    return field;
  }

  return {
    show(parameters) {
      rows = parameters;
      problem.textContent = "";
      draw();
    },
  };
}

function optionOf(type: string): HTMLOptionElement {
  const option = element("option", { text: text(`fields.parameters.types.${type}`) });
  option.value = type;
  return option;
}

/** A field with a label that only screen readers show: the head of the table has the same text. */
function labelled(key: string, field: HTMLElement): HTMLElement {
  return element("label", {}, element("span", { class: "redflow-unseen", text: text(`fields.parameters.${key}`) }), field);
}
