// The window of a chat node, in which a person chats with an agent. Owns the open windows, one for each node. Node-RED has the
// history; the status of the agents comes over /comms. Shows everything as text.

import { ChatLog, oneAtATime } from "./chat-log.mjs";
import type { ChatItem } from "./chat-log.mjs";
import { cut, element, untrusted, MAX_ROW_CHARS } from "./dom.mjs";
import { isAgent } from "./flow.mjs";
import { text } from "./text.mjs";

/** The status of an agent. Only a text is shown. */
interface Status {
  fill?: unknown;
  text?: unknown;
}

const MAX_TYPED_CHARS = 100_000;

/** The formats of pictures that models take. */
const PICTURE_TYPES = "image/png,image/jpeg,image/gif,image/webp";

/** How long the history may take, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** The open windows by node id. */
const windows = new Map<string, { dialog: any; focus(): void }>();

/** Opens the window of a chat node, or focuses the open one. */
export function openChat(node: EditorNode): void {
  const open = windows.get(node.id);
  if (open) {
    open.dialog.dialog("moveToTop");
    open.focus();
    return;
  }
  const path = `redflow/chat/${encodeURIComponent(node.id)}`;
  const topic = `redflow/chat/${node.id}`;
  const log = new ChatLog();
  const agents = element("div", { class: "redflow-chat-agents" });
  const problem = element("div", { class: "redflow-problem", attributes: { role: "status" } });
  const input = element("input", { attributes: { type: "text", maxlength: String(MAX_TYPED_CHARS), "aria-label": text("nodes.chat.say") } });
  input.placeholder = text("nodes.chat.say");
  const clear = element("button", { class: "red-ui-button", text: text("nodes.chat.clear"), attributes: { type: "button" } });
  const send = element("button", { class: "red-ui-button", text: text("nodes.chat.send"), attributes: { type: "submit" } });
  const files = element("input", { attributes: { type: "file", accept: PICTURE_TYPES, multiple: "", hidden: "", tabindex: "-1" } });
  const choose = element("button", { class: "red-ui-button", attributes: { type: "button" } });
  const form = element("form", { class: "redflow-chat-form" }, input, files, choose, send, clear);
  // A repeated message, whose response was lost, keeps its id.
  let unsent: { message: string; id: string; images: string[] } | undefined;
  const showChosen = (): void => {
    const count = files.files?.length ?? 0;
    choose.textContent = count > 0 ? text("nodes.chat.chosen", { count }) : text("nodes.chat.pictures");
  };
  showChosen();
  choose.addEventListener("click", () => files.click());
  files.addEventListener("change", () => {
    unsent = undefined;
    showChosen();
  });

  const showFailure = (request: { status: number; responseJSON?: { code?: string; message?: string } }): void => {
    const { code, message } = request.responseJSON ?? {};
    const key = request.status === 401 || request.status === 403 ? "nodes.chat.forbidden" : "nodes.chat.away";
    problem.textContent = message ? cut(`${code}: ${message}`, MAX_ROW_CHARS) : text(key);
  };
  const refresh = oneAtATime((done) => {
    $.ajax({ url: path, dataType: "json", timeout: TIMEOUT_MS })
      .done((response: { history: ChatItem[] }) => {
        problem.textContent = "";
        log.show(response.history);
      })
      .fail(showFailure)
      .always(done);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const message = input.value;
    if (message.trim() === "") {
      return;
    }
    const post = (body: object): void => {
      $.ajax({ url: path, method: "POST", contentType: "application/json", data: JSON.stringify(body) })
        .done(() => {
          unsent = undefined;
          input.value = "";
          files.value = "";
          showChosen();
          refresh();
        })
        .fail(showFailure);
    };
    if (unsent?.message === message) {
      post(unsent);
      return;
    }
    readPictures([...(files.files ?? [])], (images) => {
      if (images === undefined) {
        problem.textContent = text("nodes.chat.unreadable");
        return;
      }
      unsent = { message, id: RED.nodes.id(), images };
      post(unsent);
    });
  });
  clear.addEventListener("click", () => {
    $.ajax({ url: path, method: "DELETE" }).done(refresh).fail(showFailure);
  });
  RED.comms.subscribe(topic, refresh);
  const stopFollowing = followAgents(node, agents);
  const dialog = $("<div>").append(log.root, agents, problem, form);
  dialog.dialog({
    width: 420,
    height: 460,
    modal: false,
    closeText: text("nodes.chat.close"),
    close: () => {
      windows.delete(node.id);
      RED.comms.unsubscribe(topic, refresh);
      stopFollowing();
      RED.view.focus();
      // Later, because the key event that closed it is still being dispatched.
      setTimeout(() => dialog.dialog("destroy").remove(), 0);
    },
  });
  const frame = dialog.closest(".ui-dialog").addClass("redflow-chat");
  // As text, because older versions of the widget parse the title as HTML.
  frame.find(".ui-dialog-title").text(cut(node.name || text("nodes.chat.title"), MAX_ROW_CHARS));
  const focus = (): void => input.focus();
  windows.set(node.id, { dialog, focus });
  refresh();
  focus();
}

/** Reads the chosen files as data URLs, in their order. Gives undefined if one cannot be read. */
function readPictures(files: Blob[], done: (images: string[] | undefined) => void, read: string[] = []): void {
  const [first, ...rest] = files;
  if (first === undefined) {
    done(read);
    return;
  }
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    const url = typeof reader.result === "string" ? reader.result : "";
    readPictures(rest, done, [...read, url]);
  });
  reader.addEventListener("error", () => done(undefined));
  reader.readAsDataURL(first);
}

/** Shows the status of the agents at the chat's output, so that the user sees a sidecar that is away. */
function followAgents(node: EditorNode, host: HTMLElement): () => void {
  const wired = RED.nodes.getNodeLinks(node, 0).map((link) => link.target);
  const agents = [...new Set(wired)].filter((target) => isAgent(target.type));
  const unsubscribe = agents.map((agent) => {
    const line = untrusted("div", "", { maxChars: MAX_ROW_CHARS });
    host.append(line);
    const show = (_: string, message: unknown): void => {
      const { fill, text: status } = (message ?? {}) as Status;
      line.textContent = typeof status === "string" ? cut(status, MAX_ROW_CHARS) : "";
      line.classList.toggle("redflow-problem", fill === "red");
    };
    show("", agent["status"]);
    RED.comms.subscribe(`status/${agent.id}`, show);
    return () => RED.comms.unsubscribe(`status/${agent.id}`, show);
  });
  return () => unsubscribe.forEach((stop) => stop());
}

/** Hides the windows while a dialog is open. */
export function startChats(): void {
  const each = (visit: (frame: any) => void): void => windows.forEach(({ dialog }) => visit(dialog.closest(".ui-dialog")));
  RED.events.on("editor:open", () => each((frame) => frame.hide()));
  RED.events.on("editor:close", () => each((frame) => frame.show()));
}
