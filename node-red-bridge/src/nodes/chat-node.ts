// `chat-node`: a window in the editor in which a person chats with an agent. Owns the chats of this Node-RED, in memory, and
// the routes of the window. Never passes on a message of an agent.

import type { ChatItem } from "@redflow/bindings";
import { bodyOf, isJsonRequest, sendJson } from "../admin-http";
import type { AdminRequest, AdminResponse } from "../admin-http";
import {
  ChatHistory,
  LiveAnswers,
  MAX_ID,
  MAX_TEXT_BYTES,
  SENT,
  answerItem,
  endedRun,
  historyLimit,
  isAnswer,
  isPiece,
  questionItem,
} from "../chat-history";
import { guard, onInput } from "../guard";
import type { AdminHandler, Red, RedNode } from "../red";
import { registerNode } from "../register";

/** The chat of one node. */
interface Chat {
  node: RedNode;
  history: ChatHistory;
  live: LiveAnswers;
  /** How many items the history keeps. */
  limit: number;
  /** Whether a notice to the windows is scheduled. */
  noticePending: boolean;
  /** Whether its node is stopped: a deploy creates it again, unless it is disabled. */
  stopped: boolean;
}

/** How many chats are kept; beyond this, chats of stopped nodes are dropped. */
const MAX_CHATS = 1_000;

/** The most images of a message. */
const MAX_IMAGES = 4;

/** Milliseconds that a notice waits for further items. */
const NOTICE_DELAY_MS = 100;

/** By node id. A chat outlives the nodes of a deploy, until its node is removed. */
const chats = new Map<string, Chat>();

export = function (RED: Red): void {
  const ours = registerNode(RED, "chat-node", function (definition) {
    RED.nodes.createNode(this, definition);
    const history = chats.get(this.id)?.history ?? new ChatHistory();
    const limit = historyLimit(definition["maxHistory"]);
    const chat: Chat = { node: this, history, live: new LiveAnswers(), limit, noticePending: false, stopped: false };
    chats.set(this.id, chat);
    dropStopped();
    onInput(RED, this, (message, send, done) => {
      if (isPiece(message)) {
        const answer = chat.live.end(endedRun(message));
        if (answer !== undefined) {
          // The chat may be wired to the stream only.
          addItem(RED, chat, answer);
        } else if (chat.live.add(message, Date.now())) {
          chat.history.fit(chat.limit, chat.live.bytes);
          notifyWindows(RED, chat);
        }
        done();
        return;
      }
      const fromAgent = isAnswer(message);
      const item = fromAgent ? answerItem(message, Date.now()) : questionItem(message, Date.now());
      if (item) {
        chat.live.end(item.traceId);
        addItem(RED, chat, item);
      }
      if (!fromAgent) {
        send(message);
      }
      done();
    });
    this.on("close", (removed, done) => {
      chat.stopped = true;
      if (removed && chats.get(this.id) === chat) {
        chats.delete(this.id);
      }
      done();
    });
  });
  if (!ours) {
    return;
  }
  const [read, write] = [RED.auth.needsPermission("redflow.read"), RED.auth.needsPermission("redflow.write")];
  RED.httpAdmin.get("/redflow/chat/:id", read, withChat(sendHistory));
  RED.httpAdmin.post(
    "/redflow/chat/:id",
    write,
    withChat((chat, request, response) => sendMessage(RED, chat, request, response)),
  );
  RED.httpAdmin.delete(
    "/redflow/chat/:id",
    write,
    withChat((chat, _request, response) => {
      chat.history.clear();
      chat.live.clear();
      notifyWindows(RED, chat);
      sendJson(response, 200, JSON.stringify({ success: true }));
    }),
  );
};

function dropStopped(): void {
  for (const [id, chat] of chats.size > MAX_CHATS ? chats : []) {
    if (chat.stopped) {
      chats.delete(id);
    }
  }
}

function withChat(handle: (chat: Chat, request: AdminRequest, response: AdminResponse) => void): AdminHandler {
  return (request, response) => {
    const chat = chats.get(request.params["id"] ?? "");
    if (chat && !chat.stopped) {
      handle(chat, request, response);
    } else {
      sendProblem(response, 404, "NOT_FOUND", "The running flow has no such chat node; deploy it.");
    }
  };
}

function sendHistory(chat: Chat, _request: AdminRequest, response: AdminResponse): void {
  const history = [...chat.history.items(), ...chat.live.items()];
  sendJson(response, 200, JSON.stringify({ nodeId: chat.node.id, history, count: history.length }));
}

/** Sends a person's message to the agent. */
function sendMessage(RED: Red, chat: Chat, request: AdminRequest, response: AdminResponse): void {
  if (!isJsonRequest(request)) {
    sendProblem(response, 415, "CONTENT_TYPE_REFUSED", "Send JSON, announced as application/json.");
    return;
  }
  const { message, id: given, images = [] } = bodyOf(request) ?? {};
  if (typeof message !== "string" || message.trim() === "" || Buffer.byteLength(message) > MAX_TEXT_BYTES) {
    sendProblem(response, 400, "BODY_INVALID", `\`message\` must be a text of 1 to ${MAX_TEXT_BYTES} bytes.`);
    return;
  }
  if (!areImages(images)) {
    sendProblem(response, 400, "BODY_INVALID", `\`images\` must be a list of at most ${MAX_IMAGES} data URLs.`);
    return;
  }
  if (chat.node.wires.flat().length === 0) {
    sendProblem(response, 409, "CHAT_NOT_CONNECTED", "The chat node is not wired to an agent: wire its output and deploy.");
    return;
  }
  const id = typeof given === "string" && given !== "" && given.length <= MAX_ID ? given : RED.util.generateId();
  const item: ChatItem = { id, type: "user", content: message, timestamp: Date.now() };
  // The window repeats a request whose response was lost. The message goes out once.
  if (addItem(RED, chat, item)) {
    const withImages = images.length > 0 ? { images } : {};
    chat.node.send({ _msgid: RED.util.generateId(), payload: message, ...withImages, chatEvent: SENT, chatMessage: item });
  }
  sendJson(response, 200, JSON.stringify({ success: true, id }));
}

/** Whether a value is a list of data URLs. The agent checks whether they are images. */
function areImages(images: unknown): images is string[] {
  const isDataUrl = (image: unknown): boolean => typeof image === "string" && image.startsWith("data:");
  return Array.isArray(images) && images.length <= MAX_IMAGES && images.every(isDataUrl);
}

/** Adds an item to the history. False if nothing changes. */
function addItem(RED: Red, chat: Chat, item: ChatItem): boolean {
  const isNew = chat.history.add(item, chat.limit);
  if (isNew) {
    notifyWindows(RED, chat);
  }
  return isNew;
}

/**
 * Notifies the windows of a change, without its content: every editor receives the notice, also one whose user may not read
 * chats, and Node-RED queues unsent notices without a limit.
 */
function notifyWindows(RED: Red, chat: Chat): void {
  if (chat.noticePending) {
    return;
  }
  chat.noticePending = true;
  setTimeout(() => {
    chat.noticePending = false;
    guard(RED, "the windows of a chat could not be notified", () => {
      RED.comms.publish(`redflow/chat/${chat.node.id}`, { count: chat.history.items().length }, false);
    });
  }, NOTICE_DELAY_MS).unref();
}

function sendProblem(response: AdminResponse, status: number, code: string, message: string): void {
  sendJson(response, status, JSON.stringify({ code, message }));
}
