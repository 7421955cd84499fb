// The window of a chat node, in which a person talks with an agent. Owns the windows that are open, one per node. What was
// said comes from Node-RED; how the agents behind the chat are, from their status. All of it is shown as text.

import { cut, element, foreign, SHOWN_IN_ROW } from "./dom.mjs";
import { text } from "./text.mjs";

/** Something that was said, as Node-RED keeps it. */
interface Said {
  type: "user" | "agent";
  content: string;
}

/** What an agent's status says: only texts are shown. */
interface Status {
  fill?: unknown;
  text?: unknown;
}

const MAX_TYPED_CHARS = 100_000;

/** Characters of one thing that was said. A longer one is in the flow's messages. */
const SHOWN_SAID_CHARS = 20_000;

/** By node: each opens its window once. */
const windows = new Map<string, { dialog: any; focus(): void }>();

/** Opens the chat's window, or goes to the one that is open. */
export function openChat(node: EditorNode): void {
  const open = windows.get(node.id);
  if (open) {
    open.dialog.dialog("moveToTop");
    open.focus();
    return;
  }
  const path = `redflow/chat/${encodeURIComponent(node.id)}`;
  const topic = `redflow/chat/${node.id}`;
  const history = element("div", { class: "redflow-chat-said", attributes: { role: "log", tabindex: "0" } });
  const agents = element("div", { class: "redflow-chat-agents" });
  const problem = element("div", { class: "redflow-problem", attributes: { role: "status" } });
  const input = element("input", { attributes: { type: "text", maxlength: String(MAX_TYPED_CHARS), "aria-label": text("nodes.chat.say") } });
  input.placeholder = text("nodes.chat.say");
  const clear = element("button", { class: "red-ui-button", text: text("nodes.chat.clear"), attributes: { type: "button" } });
  const send = element("button", { class: "red-ui-button", text: text("nodes.chat.send"), attributes: { type: "submit" } });
  const form = element("form", { class: "redflow-chat-form" }, input, send, clear);
  // A message that is sent again because its answer was lost has the same id.
  let unsent: { message: string; id: string } | undefined;

  const failed = (request: { status: number; responseJSON?: { code?: string; message?: string } }): void => {
    const { code, message } = request.responseJSON ?? {};
    const key = request.status === 401 || request.status === 403 ? "nodes.chat.forbidden" : "nodes.chat.away";
    problem.textContent = message ? cut(`${code}: ${message}`, SHOWN_IN_ROW) : text(key);
  };
  const refresh = (): void => {
    $.getJSON(path)
      .done((answer: { history: Said[] }) => {
        problem.textContent = "";
        history.replaceChildren(...answer.history.map(said));
        history.scrollTop = history.scrollHeight;
      })
      .fail(failed);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const message = input.value;
    if (message.trim() === "") {
      return;
    }
    if (unsent?.message !== message) {
      unsent = { message, id: RED.nodes.id() };
    }
    $.ajax({ url: path, method: "POST", contentType: "application/json", data: JSON.stringify(unsent) })
      .done(() => {
        unsent = undefined;
        input.value = "";
        refresh();
      })
      .fail(failed);
  });
  clear.addEventListener("click", () => {
    $.ajax({ url: path, method: "DELETE" }).done(refresh).fail(failed);
  });
  RED.comms.subscribe(topic, refresh);
  const leave = followAgents(node, agents);
  const dialog = $("<div>").append(history, agents, problem, form);
  dialog.dialog({
    width: 420,
    height: 460,
    modal: false,
    closeText: text("nodes.chat.close"),
    close: () => {
      windows.delete(node.id);
      RED.comms.unsubscribe(topic, refresh);
      leave();
      RED.view.focus();
      // Not at once: the key that closed it is still on its way through the page.
      setTimeout(() => dialog.dialog("destroy").remove(), 0);
    },
  });
  const frame = dialog.closest(".ui-dialog").addClass("redflow-chat");
  // The title is given as text: the widget would take it as HTML in older versions.
  frame.find(".ui-dialog-title").text(cut(node.name || text("nodes.chat.title"), SHOWN_IN_ROW));
  const focus = (): void => input.focus();
  windows.set(node.id, { dialog, focus });
  refresh();
  focus();
}

function said(item: Said): HTMLElement {
  const isPerson = item.type === "user";
  const side = isPerson ? "redflow-chat-user" : "redflow-chat-agent";
  const who = element("span", { class: "redflow-chat-who", text: text(isPerson ? "nodes.chat.person" : "nodes.chat.agent") });
  const what = foreign("div", item.content, { most: SHOWN_SAID_CHARS });
  return element("div", { class: `redflow-chat-item ${side}` }, who, what);
}

/** Shows how the agents are that the chat's output is wired to. Without it a sidecar that is away would just be silence. */
function followAgents(node: EditorNode, place: HTMLElement): () => void {
  const wired = RED.nodes.getNodeLinks(node, 0).map((link) => link.target);
  const agents = [...new Set(wired)].filter((target) => target.type === "agent-core");
  const follow = agents.map((agent) => {
    const line = foreign("div", "", { most: SHOWN_IN_ROW });
    place.append(line);
    const show = (_: string, message: unknown): void => {
      const { fill, text: words } = (message ?? {}) as Status;
      line.textContent = typeof words === "string" ? cut(words, SHOWN_IN_ROW) : "";
      line.classList.toggle("redflow-problem", fill === "red");
    };
    show("", agent["status"]);
    RED.comms.subscribe(`status/${agent.id}`, show);
    return () => RED.comms.unsubscribe(`status/${agent.id}`, show);
  });
  return () => follow.forEach((leave) => leave());
}

/** While something is edited, the windows are out of its way. */
export function startChats(): void {
  const each = (visit: (frame: any) => void): void => windows.forEach(({ dialog }) => visit(dialog.closest(".ui-dialog")));
  RED.events.on("editor:open", () => each((frame) => frame.hide()));
  RED.events.on("editor:close", () => each((frame) => frame.show()));
}
