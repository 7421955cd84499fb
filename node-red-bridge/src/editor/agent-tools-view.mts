// The tab Tools of an agent with a list of allowed tools: the connected tools, with a box for each that the model may call. Finds
// no tools and checks none itself.

import type { Diagnostic } from "@redflow/bindings";
import { type Tool, addName, notAllowed, notConnected, removeName } from "./agent-tools.mjs";
import { MAX_ROW_CHARS, button, element, untrusted } from "./dom.mjs";
import { text } from "./text.mjs";
import { isNamed } from "./tool-ids.mjs";

/** The most rows. */
export const MAX_ROWS = 100;

/** The most problems of one tool. */
const MAX_PROBLEMS = 5;

/** Problems that a row itself shows at once, without the checker. */
const SHOWN_BY_ROW: ReadonlySet<string> = new Set(["TOOL_WITHOUT_SCHEMA", "TOOL_CONNECTED_NOT_ALLOWED", "TOOL_NAME_INVALID"]);

/** The data of the tab. */
export interface ToolsModel {
  tools(): Tool[];
  /** The checker's problems of a tool of this agent. */
  problems(tool: Tool): Diagnostic[];
  /** Opens the dialog of a node. */
  edit(node: EditorNode): void;
}

export interface ToolsView {
  /** Reads the wires again and updates the rows. */
  refresh(): void;
  names(): string[];
}

/** Creates the tab in `host`. Calls `onChange` when the user changes the allowed tools. */
export function toolsView(host: HTMLElement, model: ToolsModel, allowed: string[], onChange: () => void): ToolsView {
  let names = allowed;
  /** The names when the dialog opened. Their rows stay, so that a cleared box can be ticked again. */
  const initial = [...allowed];
  let tools: Tool[] = [];
  const list = element("ul", { class: "redflow-agent-tools" });
  const empty = element("div", { class: "redflow-agent-empty" });
  const all = button(text("agent.tools.allowAll"), () => set(notAllowed(names, tools).reduce(addName, names)), {
    class: "red-ui-button red-ui-button-small redflow-agent-allow-all",
  });
  host.replaceChildren(empty, list, all);

  function set(next: string[]): void {
    names = next;
    updateBoxes();
    onChange();
  }

  /** Ticks the boxes of the allowed names. */
  function updateBoxes(): void {
    for (const box of list.querySelectorAll<HTMLInputElement>("input[data-tool]")) {
      const name = box.dataset["tool"] ?? "";
      box.checked = isNamed(names, name);
      // A tool without a name cannot be allowed, and one that a pattern allows is not cleared by itself.
      box.disabled = name === "" || (box.checked && !names.includes(name));
    }
    all.hidden = notAllowed(names, tools).length === 0;
  }

  function refresh(): void {
    tools = model.tools();
    const focused = document.activeElement instanceof HTMLInputElement ? document.activeElement.dataset["tool"] : undefined;
    const others = [...new Set([...initial, ...names])].filter((name) => !tools.some((tool) => tool.name === name));
    const rows = [...tools.map((tool) => toolRow(tool, model, box(tool.name))), ...others.map(otherRow)];
    const more = rows.length - MAX_ROWS;
    list.replaceChildren(...rows.slice(0, MAX_ROWS));
    if (more > 0) {
      list.append(element("li", { class: "redflow-hint", text: text("agent.tools.more", { n: more }) }));
    }
    list.hidden = rows.length === 0;
    empty.replaceChildren(...(tools.length === 0 ? emptyState("agent.tools.emptyHow") : []));
    empty.hidden = tools.length > 0;
    updateBoxes();
    if (focused !== undefined) {
      [...list.querySelectorAll<HTMLInputElement>("input[data-tool]")].find((box) => box.dataset["tool"] === focused)?.focus();
    }
  }

  /** The row of an allowed name that no connected tool has as its own: a pattern, or a name that does not exist. */
  function otherRow(name: string): HTMLElement {
    const head = element("div", { class: "redflow-agent-tool-head" }, box(name));
    if (notConnected([name], tools).length === 0) {
      return element("li", { class: "redflow-agent-tool" }, head);
    }
    head.append(element("span", { class: "redflow-agent-tool-type", text: text("agent.tools.notConnected") }));
    return element("li", { class: "redflow-agent-tool redflow-agent-loose" }, head, remark(text("agent.tools.drop"), "error"));
  }

  /** A box with the name as its label. */
  function box(name: string): HTMLElement {
    const input = element("input", { attributes: { type: "checkbox" } });
    input.dataset["tool"] = name;
    input.addEventListener("change", () => set((input.checked ? addName : removeName)(names, name)));
    const label = name === "" ? text("agent.tools.noName") : name;
    return element("label", { class: "redflow-agent-tool-box" }, input, untrusted("span", label, { maxChars: MAX_ROW_CHARS }));
  }

  refresh();
  return { refresh, names: () => names };
}

/** The hint when no tool is connected, with the text of the key. */
export function emptyState(how: string): HTMLElement[] {
  return [element("p", { text: text("agent.tools.empty") }), element("p", { class: "redflow-hint", text: text(how) })];
}

/** The row of a tool: `lead` with its name, its type and effect, and its problems. `buttons` come before the one that edits it. */
export function toolRow(tool: Tool, model: ToolsModel, lead: HTMLElement, ...buttons: HTMLElement[]): HTMLElement {
  const { node, nameVerdict } = tool;
  const type = untrusted("span", node.type, { class: "redflow-agent-tool-type", maxChars: MAX_ROW_CHARS });
  const edit = iconButton("pencil", text("agent.tools.edit"), () => model.edit(node));
  const row = element("li", { class: "redflow-agent-tool" }, element("div", { class: "redflow-agent-tool-head" }, lead, type, ...buttons, edit));
  // The same texts as in the dialog of a flow tool.
  if (tool.effect !== undefined) {
    const effect = text(`nodes.option.effect.${tool.effect}`);
    row.append(element("div", { class: "redflow-hint", text: tool.effectAssumed ? `${effect} ${text("agent.tools.assumed")}` : effect }));
  }
  if (nameVerdict !== true) {
    row.append(remark(nameVerdict, "error"));
  }
  if (!tool.hasSchema) {
    row.append(remark(text("agent.tools.noSchema"), "warning"));
  }
  const problems = model.problems(tool).filter(({ code }) => !SHOWN_BY_ROW.has(code));
  for (const { severity, message, help } of problems.slice(0, MAX_PROBLEMS)) {
    row.append(remark(`${message}. ${help}`, severity === "error" ? "error" : "warning"));
  }
  return row;
}

/** A button with an icon only. */
export function iconButton(icon: string, label: string, onClick: () => void): HTMLButtonElement {
  const created = button("", onClick, { title: label, attributes: { "aria-label": label } });
  created.append(element("i", { class: `fa fa-${icon}`, attributes: { "aria-hidden": "true" } }));
  return created;
}

export function remark(sentence: string, severity: "error" | "warning"): HTMLElement {
  const icon = element("i", { class: "fa fa-exclamation-triangle", attributes: { "aria-hidden": "true" } });
  const className = severity === "error" ? "redflow-agent-remark redflow-bad" : "redflow-agent-remark";
  return element("div", { class: className }, icon, untrusted("span", sentence));
}
