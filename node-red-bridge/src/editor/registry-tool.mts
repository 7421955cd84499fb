// The dialog of a registry-tool: the tools that the connected sidecars have, with a box for each. The field with the ids stays
// the only value: the boxes change its text. Without a sidecar there are no boxes.

import type { RegistryTool } from "../admin-api.js";
import { adminApi } from "./admin-client.mjs";
import { MAX_ROW_CHARS, element, untrusted } from "./dom.mjs";
import { jsonOf } from "./fields.mjs";
import { text } from "./text.mjs";
import { isNamed } from "./tool-ids.mjs";

/** The most rows. */
const MAX_ROWS = 200;

/** The ids in the text of the field; none if it is no list of texts. */
export function idsOf(typed: string): string[] | undefined {
  const value = jsonOf(typed);
  const isList = Array.isArray(value) && value.every((id) => typeof id === "string");
  return isList ? value : typed.trim() === "" ? [] : undefined;
}

/** The text of the field after a box was ticked or cleared. */
export function withId(typed: string, id: string, isTicked: boolean): string {
  const others = (idsOf(typed) ?? []).filter((other) => other !== id);
  return JSON.stringify(isTicked ? [...others, id] : others, null, 2);
}

/** The tools that a registry-tool can bind: those of the manifest, each once. */
export function bindable(tools: RegistryTool[]): RegistryTool[] {
  const byId = new Map(tools.filter(({ origin }) => origin === "manifest").map((tool) => [tool.id, tool]));
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Fills the list of the dialog. For `oneditprepare`, after the fields are prepared. */
export async function listRegistry(): Promise<void> {
  const host = document.getElementById("node-input-redflow-registry");
  const field = document.getElementById("node-input-redflow-ids");
  if (host === null || !(field instanceof HTMLTextAreaElement)) {
    return;
  }
  host.textContent = text("nodes.registry.loading");
  const tools = await connectedTools();
  if (tools === undefined || tools.length === 0) {
    host.textContent = text(tools === undefined ? "nodes.registry.offline" : "nodes.registry.empty");
    return;
  }
  const boxes = tools.slice(0, MAX_ROWS).map((tool) => row(tool, field));
  const update = (): void => boxes.forEach(({ show }) => show());
  const rows = boxes.map(({ root }) => root);
  if (tools.length > MAX_ROWS) {
    rows.push(element("li", { class: "redflow-hint", text: text("agent.tools.more", { n: tools.length - MAX_ROWS }) }));
  }
  host.replaceChildren(element("ul", { class: "redflow-registry-tools" }, ...rows));
  $(field).on("input change", update);
  update();
}

/** The tools of all connected sidecars; undefined if none answers. */
async function connectedTools(): Promise<RegistryTool[] | undefined> {
  try {
    const { runtimes } = await adminApi.runtimes();
    const connected = runtimes.filter(({ state }) => state.is === "connected");
    const answers = await Promise.allSettled(connected.map(({ id }) => adminApi.tools(id)));
    const lists = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value.tools] : []));
    return lists.length === 0 ? undefined : bindable(lists.flat());
  } catch {
    return undefined;
  }
}

/** A box with the id of a tool, and what the tool does. `show` ticks the box as the field says. */
function row({ id, title, description, state }: RegistryTool, field: HTMLTextAreaElement): { root: HTMLElement; show: () => void } {
  const box = element("input", { attributes: { type: "checkbox" } });
  box.addEventListener("change", () => $(field).val(withId(field.value, id, box.checked)).trigger("change"));
  const label = element("label", { class: "redflow-agent-tool-box" }, box, untrusted("span", id, { maxChars: MAX_ROW_CHARS }));
  const about = [title, description].filter((part) => part !== "").join(": ");
  const hint = untrusted("div", state === "ready" ? about : `${about} (${state})`, { class: "redflow-hint", maxChars: MAX_ROW_CHARS });
  const show = (): void => {
    const ids = idsOf(field.value);
    box.checked = ids !== undefined && isNamed(ids, id);
    // A pattern ticks it, or the field has an error.
    box.disabled = ids === undefined || (box.checked && !ids.includes(id));
  };
  return { root: element("li", {}, label, hint), show };
}
