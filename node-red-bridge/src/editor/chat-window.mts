// The window of a chat node, in which a person chats with an agent. Owns the open windows, one for each node. Node-RED has the
// history; the status of the agents comes over /comms. Shows everything as text.

import { ChatLog, oneAtATime } from "./chat-log.mjs";
import type { ChatItem } from "./chat-log.mjs";
import { IMAGE_TYPES, imageLabels, imageProblem, readImages } from "./chat-images.mjs";
import { cut, element, untrusted, MAX_ROW_CHARS } from "./dom.mjs";
import { isAgent } from "./flow.mjs";
import { text } from "./text.mjs";

/** The status of an agent. Only a text is shown. */
interface Status {
  fill?: unknown;
  text?: unknown;
}

/** A message without a response, with the text and the choice of files that it was made of. */
interface UnsentMessage {
  typed: string;
  choice: number;
  body: { message: string; id: string; images: string[] };
}

const MAX_TYPED_CHARS = 100_000;

/** How long the history may take, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** How long a message with its images may take, in milliseconds. */
const SEND_TIMEOUT_MS = 120_000;

/** The texts of failures without a text of their own, by HTTP status. Node-RED itself refuses a body that is too large. */
const FAILURES: Record<number, string> = { 401: "nodes.chat.forbidden", 403: "nodes.chat.forbidden", 413: "nodes.chat.refusedSize" };

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
  const files = element("input", { attributes: { type: "file", accept: IMAGE_TYPES.join(","), multiple: "", hidden: "", tabindex: "-1" } });
  const choose = element("button", { class: "red-ui-button", attributes: { type: "button" } });
  const form = element("form", { class: "redflow-chat-form" }, input, files, choose, send, clear);
  // A repeated message, whose response was lost, keeps its id.
  let unsent: UnsentMessage | undefined;
  // Counts the choices of files: a choice during a request belongs to the next message.
  let choices = 0;
  const chosenFiles = (): File[] => [...(files.files ?? [])];
  const showChosen = (): void => {
    const n = chosenFiles().length;
    choose.textContent = n > 0 ? text("nodes.chat.chosen", { n }) : text("nodes.chat.images");
  };
  showChosen();
  choose.addEventListener("click", () => files.click());
  files.addEventListener("change", () => {
    choices += 1;
    const found = imageProblem(chosenFiles());
    problem.textContent = found ?? "";
    if (found !== undefined) {
      files.value = "";
    }
    showChosen();
  });

  const showFailure = (request: { status: number; responseJSON?: { code?: string; message?: string } }): void => {
    const { code, message } = request.responseJSON ?? {};
    problem.textContent = message ? cut(`${code}: ${message}`, MAX_ROW_CHARS) : text(FAILURES[request.status] ?? "nodes.chat.offline");
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
  // While a message is read and sent, another press would send it twice.
  let isSending = false;
  const setSending = (sending: boolean): void => {
    isSending = sending;
    send.setAttribute("aria-disabled", String(sending));
  };
  const post = ({ typed, choice, body }: UnsentMessage): void => {
    $.ajax({ url: path, method: "POST", contentType: "application/json", data: JSON.stringify(body), timeout: SEND_TIMEOUT_MS })
      .done(() => {
        unsent = undefined;
        if (input.value === typed) {
          input.value = "";
        }
        if (choices === choice) {
          files.value = "";
          showChosen();
        }
        refresh();
      })
      .fail(showFailure)
      .always(() => setSending(false));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [typed, choice, chosen] = [input.value, choices, chosenFiles()];
    const message = typed.trim() === "" ? imageLabels(chosen.length) : typed;
    if (message === "" || isSending) {
      return;
    }
    setSending(true);
    if (unsent?.typed === typed && unsent.choice === choice) {
      post(unsent);
      return;
    }
    readImages(chosen, (images) => {
      if (images === undefined) {
        setSending(false);
        problem.textContent = text("nodes.chat.unreadable");
        return;
      }
      unsent = { typed, choice, body: { message, id: RED.nodes.id(), images } };
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

/** Shows the status of the agents at the chat's output, so that the user sees a sidecar that is offline. */
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
