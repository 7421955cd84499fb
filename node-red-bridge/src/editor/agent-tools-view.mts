// The tab Tools of an agent: what is wired to it, and which of it the model may call. Owns the rows and their boxes; which
// tools there are is agent-wiring's, and what is wrong with them the checker's.

import type { Diagnostic } from "@redflow/bindings";
import { type Effect, type Tool, notAllowed, notConnected, withName } from "./agent-tools.mjs";
import { SHOWN_IN_ROW, button, element, foreign } from "./dom.mjs";
import { text } from "./text.mjs";

/** Rows shown at most. */
const MAX_ROWS = 100;

/** Problems shown with a tool, at most. */
const MAX_PROBLEMS = 5;

/** What a row says itself, and at once: it need not wait for the checker. */
const SAID_HERE: ReadonlySet<string> = new Set(["TOOL_WITHOUT_SCHEMA", "TOOL_CONNECTED_NOT_ALLOWED", "TOOL_NAME_INVALID"]);

/** As the dialog of a flow tool says it. */
const EFFECT_WORDS: Record<Effect, string> = {
  read: "nodes.option.effect.read",
  idempotent: "nodes.option.effect.idempotent",
  at_most_once: "nodes.option.effect.once",
};

/** What the tab shows. */
export interface ToolsModel {
  tools(): Tool[];
  /** What the checker holds against a tool, as a tool of this agent. */
  problems(tool: Tool): Diagnostic[];
  /** Opens the dialog of a node. */
  edit(node: EditorNode): void;
}

export interface ToolsView {
  /** Reads the wires again. */
  refresh(): void;
  names(): string[];
}

/** Makes the tab in `host`. `changed` is called when a person has changed which tools are allowed. */
export function toolsView(host: HTMLElement, model: ToolsModel, allowed: string[], changed: () => void): ToolsView {
  let names = allowed;
  /** Names that were there when the dialog opened: a box that was cleared can be ticked again. */
  const begun = [...allowed];
  let tools: Tool[] = [];
  const list = element("ul", { class: "redflow-agent-tools" });
  const empty = element("div", { class: "redflow-agent-empty" });
  const all = button(text("agent.tools.allowAll"), () => set(notAllowed(names, tools).reduce((now, name) => withName(now, name, true), names)), {
    class: "red-ui-button red-ui-button-small redflow-agent-allow-all",
  });
  host.replaceChildren(empty, list, all);

  function set(next: string[]): void {
    names = next;
    sync();
    changed();
  }

  /** Puts the boxes where the names are. */
  function sync(): void {
    for (const box of list.querySelectorAll<HTMLInputElement>("input[data-tool]")) {
      box.checked = names.includes(box.dataset["tool"] ?? "");
    }
    all.hidden = notAllowed(names, tools).length === 0;
  }

  function refresh(): void {
    tools = model.tools();
    const focused = document.activeElement instanceof HTMLInputElement ? document.activeElement.dataset["tool"] : undefined;
    const loose = [...new Set([...begun, ...names])].filter((name) => notConnected([name], tools).length > 0);
    const rows = [...tools.map(connectedRow), ...loose.map(looseRow)];
    const more = rows.length - MAX_ROWS;
    list.replaceChildren(...rows.slice(0, MAX_ROWS));
    if (more > 0) {
      list.append(element("li", { class: "redflow-hint", text: text("agent.tools.more", { n: more }) }));
    }
    list.hidden = rows.length === 0;
    empty.replaceChildren(...(tools.length === 0 ? emptyState() : []));
    empty.hidden = tools.length > 0;
    sync();
    if (focused !== undefined) {
      [...list.querySelectorAll<HTMLInputElement>("input[data-tool]")].find((box) => box.dataset["tool"] === focused)?.focus();
    }
  }

  function connectedRow(tool: Tool): HTMLElement {
    const { node, name, nameVerdict } = tool;
    const head = element(
      "div",
      { class: "redflow-agent-tool-head" },
      box(name, name === "" ? text("agent.tools.noName") : name, name === ""),
      foreign("span", node.type, { class: "redflow-agent-tool-type", most: SHOWN_IN_ROW }),
      editButton(node),
    );
    const row = element("li", { class: "redflow-agent-tool" }, head);
    const effect = text(EFFECT_WORDS[tool.effect]);
    row.append(element("div", { class: "redflow-hint", text: tool.effectAssumed ? `${effect} ${text("agent.tools.assumed")}` : effect }));
    if (nameVerdict !== true) {
      row.append(remark(nameVerdict, true));
    }
    if (!tool.hasSchema) {
      row.append(remark(text("agent.tools.noSchema"), false));
    }
    const problems = model.problems(tool).filter(({ code }) => !SAID_HERE.has(code));
    for (const { severity, message, help } of problems.slice(0, MAX_PROBLEMS)) {
      row.append(remark(`${message}. ${help}`, severity === "error"));
    }
    return row;
  }

  function looseRow(name: string): HTMLElement {
    const head = element("div", { class: "redflow-agent-tool-head" }, box(name, name, false));
    head.append(element("span", { class: "redflow-agent-tool-type", text: text("agent.tools.notConnected") }));
    return element("li", { class: "redflow-agent-tool redflow-agent-loose" }, head, remark(text("agent.tools.drop"), true));
  }

  function box(name: string, label: string, disabled: boolean): HTMLElement {
    const input = element("input", { attributes: { type: "checkbox" } });
    input.dataset["tool"] = name;
    input.disabled = disabled;
    input.addEventListener("change", () => set(withName(names, name, input.checked)));
    return element("label", { class: "redflow-agent-tool-box" }, input, foreign("span", label, { most: SHOWN_IN_ROW }));
  }

  function editButton(node: EditorNode): HTMLElement {
    const words = text("agent.tools.edit");
    const made = button("", () => model.edit(node), { title: words, attributes: { "aria-label": words } });
    made.append(element("i", { class: "fa fa-pencil", attributes: { "aria-hidden": "true" } }));
    return made;
  }

  refresh();
  return { refresh, names: () => names };
}

/** What to do if nothing is wired. */
function emptyState(): HTMLElement[] {
  return [
    element("p", { text: text("agent.tools.empty") }),
    element("p", { class: "redflow-hint", text: text("agent.tools.emptyHow") }),
  ];
}

function remark(words: string, isError: boolean): HTMLElement {
  const icon = element("i", { class: "fa fa-exclamation-triangle", attributes: { "aria-hidden": "true" } });
  const made = element("div", { class: isError ? "redflow-agent-remark redflow-bad" : "redflow-agent-remark" }, icon);
  made.append(foreign("span", words));
  return made;
}
