// The tab Tools of an agent that may call every tool it binds: the tools by wires, and those that its property names. Finds no
// tools and checks none itself.

import { addSelect } from "./agent-services-view.mjs";
import { type Tool, addName, removeName } from "./agent-tools.mjs";
import { MAX_ROWS, type ToolsModel, type ToolsView, emptyState, iconButton, remark, toolRow } from "./agent-tools-view.mjs";
import { MAX_ROW_CHARS, element, untrusted } from "./dom.mjs";
import { text } from "./text.mjs";

/** The data of the tab. */
export interface BoundToolsModel extends ToolsModel {
  /** The tools by wires. */
  wired(): Tool[];
  /** The tools that the dialog offers. A flow may also name ordinary nodes. */
  candidates(): EditorNode[];
  /** The tools of an enabled node of the flow; none if there is no such node. */
  find(id: string): Tool[];
}

/** Creates the tab in `host`. `names()` of the view are the ids of the named tools. */
export function boundToolsView(host: HTMLElement, model: BoundToolsModel, named: string[], onChange: () => void): ToolsView {
  let ids = named;
  const list = element("ul", { class: "redflow-agent-tools" });
  const empty = element("div", { class: "redflow-agent-empty" });
  const add = addSelect(host, (id) => set(addName(ids, id)));
  host.replaceChildren(empty, list, add.select);

  function set(next: string[]): void {
    ids = next;
    refresh();
    onChange();
  }

  function refresh(): void {
    const [wired, known] = [model.wired(), model.candidates()];
    const isWired = (id: string): boolean => wired.some(({ node }) => node.id === id);
    const rows = [...wired.map(wiredRow), ...ids.filter((id) => !isWired(id)).flatMap((id) => namedRows(id, model.find(id)))];
    const more = rows.length - MAX_ROWS;
    list.replaceChildren(...rows.slice(0, MAX_ROWS));
    if (more > 0) {
      list.append(element("li", { class: "redflow-hint", text: text("agent.tools.more", { n: more }) }));
    }
    list.hidden = rows.length === 0;
    empty.replaceChildren(...(rows.length === 0 ? emptyState("agent.tools.emptyBound") : []));
    empty.hidden = rows.length > 0;
    add.fill(known.filter(({ id }) => !ids.includes(id) && !isWired(id)));
  }

  function wiredRow(tool: Tool): HTMLElement {
    const byWire = element("span", { class: "redflow-agent-tool-type", text: text("agent.tools.byWire") });
    return toolRow(tool, model, nameOf(tool.name), byWire);
  }

  function namedRows(id: string, tools: Tool[]): HTMLElement[] {
    const remove = (): HTMLElement => iconButton("remove", text("agent.services.remove"), () => set(removeName(ids, id)));
    if (tools.length > 0) {
      return tools.map((tool) => toolRow(tool, model, nameOf(tool.name), remove()));
    }
    const head = element("div", { class: "redflow-agent-tool-head" }, nameOf(id), remove());
    return [element("li", { class: "redflow-agent-tool redflow-agent-loose" }, head, remark(text("agent.tools.gone"), "error"))];
  }

  function nameOf(name: string): HTMLElement {
    const label = name === "" ? text("agent.tools.noName") : name;
    return untrusted("span", label, { class: "redflow-agent-tool-name", maxChars: MAX_ROW_CHARS });
  }

  refresh();
  return { refresh, names: () => ids };
}
