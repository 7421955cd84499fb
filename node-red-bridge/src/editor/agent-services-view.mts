// The fields of an agent that name other nodes: a select of one node, and a list of nodes in order. Finds no nodes itself.

import { moveUp, withLabels } from "./agent-services.mjs";
import { iconButton } from "./agent-tools-view.mjs";
import { MAX_ROW_CHARS, cut, element, untrusted } from "./dom.mjs";
import { canvasLabel } from "./node-label.mjs";
import { text } from "./text.mjs";

/** The most rows of a list, and the most options of a select. */
const MAX_OPTIONS = 500;

export interface ServiceList {
  /** The ids, if the user has changed the list. */
  edited(): string[] | undefined;
}

/** The label of a node on the canvas; the id of a node that does not exist. */
export function labelOf(node: EditorNode): string {
  return canvasLabel(node) ?? node.id;
}

/** Fills a select with nodes. Its empty option stands for the node that a wire binds. */
export function fillService(select: HTMLSelectElement, value: unknown, wired: EditorNode[], nodes: EditorNode[]): void {
  const names = wired.map(labelOf).join(", ");
  const none = names === "" ? text("agent.services.none") : text("agent.services.wired", { name: cut(names, MAX_ROW_CHARS) });
  select.replaceChildren(option("", none), ...options(nodes));
  select.value = typeof value === "string" ? value : "";
}

/** Creates a list of nodes in order, with a select that adds one. */
export function serviceList(host: HTMLElement, initial: string[], nodes: () => EditorNode[]): ServiceList {
  let [ids, isEdited] = [initial, false];
  const list = element("ol", { class: "redflow-service-list" });
  const add = addSelect(host, (id) => set([...ids, id]));
  host.replaceChildren(list, add.select);

  function set(next: string[]): void {
    [ids, isEdited] = [next, true];
    draw();
  }

  function draw(): void {
    const known = nodes();
    list.replaceChildren(...ids.map((id, index) => row(id, index, known.find((node) => node.id === id))));
    list.hidden = ids.length === 0;
    add.fill(known.filter(({ id }) => !ids.includes(id)));
  }

  function row(id: string, index: number, node: EditorNode | undefined): HTMLElement {
    const name = node === undefined ? text("agent.services.gone", { id: cut(id, MAX_ROW_CHARS) }) : labelOf(node);
    const up = iconButton("arrow-up", text("agent.services.up"), () => set(moveUp(ids, index)));
    up.disabled = index === 0;
    const remove = iconButton("remove", text("agent.services.remove"), () => set(ids.filter((other) => other !== id)));
    return element("li", {}, untrusted("span", name, { class: "redflow-service-name", maxChars: MAX_ROW_CHARS }), up, remove);
  }

  draw();
  return { edited: () => (isEdited ? ids : undefined) };
}

/** A select whose options add a node. */
export function addSelect(host: HTMLElement, onAdd: (id: string) => void): { select: HTMLSelectElement; fill(nodes: EditorNode[]): void } {
  const label = text("agent.services.add");
  const select = element("select", { class: "redflow-service-add", attributes: { "aria-label": label } });
  select.id = `${host.id}-add`;
  select.addEventListener("change", () => select.value !== "" && onAdd(select.value));
  return {
    select,
    fill(nodes) {
      select.replaceChildren(option("", nodes.length === 0 ? text("agent.services.noMore") : label), ...options(nodes));
      select.disabled = nodes.length === 0;
    },
  };
}

function options(nodes: EditorNode[]): HTMLOptionElement[] {
  return withLabels(nodes.slice(0, MAX_OPTIONS), labelOf).map(({ id, label }) => option(id, label));
}

function option(value: string, label: string): HTMLOptionElement {
  const created = untrusted("option", label, { maxChars: MAX_ROW_CHARS });
  created.value = value;
  return created;
}
