// `chat-node`: a window in the editor in which a person talks with an agent. Owns the chats of this Node-RED, in memory, and
// the routes the window uses. What an agent says never goes out again.

import type { ChatItem } from "@redflow/bindings";
import { answer, Book, isAnswer, keeps, MAX_ID, MAX_TEXT_BYTES, question, SENT } from "../chat";
import { guarded, onInput } from "../guard";
import type { AdminHandler, Red, RedNode } from "../red";
import { registerNode } from "../register";

/** A chat node of the flow that runs. */
interface Chat {
  node: RedNode;
  book: Book;
  most: number;
  /** Whether windows will be told soon that something was said. */
  telling: boolean;
  /** Whether its node has been stopped: a deploy makes it anew, unless it was disabled. */
  stopped: boolean;
}

/** Chats that are kept; of more, those whose node is stopped are forgotten. */
const MAX_CHATS = 1_000;

/** Milliseconds that what is said waits, so that much of it is told at once. */
const TELL_AFTER_MS = 100;

/** By node. A deploy makes new nodes; what was said stays until its node is removed. */
const chats = new Map<string, Chat>();

export = function (RED: Red): void {
  const ours = registerNode(RED, "chat-node", function (definition) {
    RED.nodes.createNode(this, definition);
    const book = chats.get(this.id)?.book ?? new Book();
    const chat: Chat = { node: this, book, most: keeps(definition["maxHistory"]), telling: false, stopped: false };
    chats.set(this.id, chat);
    forgetStopped();
    onInput(RED, this, (message, send, done) => {
      const fromAgent = isAnswer(message);
      const item = fromAgent ? answer(message, Date.now()) : question(message, Date.now());
      if (item) {
        say(RED, chat, item);
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
  RED.httpAdmin.get("/redflow/chat/:id", read, withChat(showHistory));
  RED.httpAdmin.post(
    "/redflow/chat/:id",
    write,
    withChat((chat, request, response) => sendMessage(RED, chat, request, response)),
  );
  RED.httpAdmin.delete(
    "/redflow/chat/:id",
    write,
    withChat((chat, _request, response) => {
      chat.book.clear();
      tell(RED, chat);
      reply(response, 200, { success: true });
    }),
  );
};

function forgetStopped(): void {
  for (const [id, chat] of chats.size > MAX_CHATS ? chats : []) {
    if (chat.stopped) {
      chats.delete(id);
    }
  }
}

type Request = Parameters<AdminHandler>[0];
type Response = Parameters<AdminHandler>[1];

function withChat(handle: (chat: Chat, request: Request, response: Response) => void): AdminHandler {
  return (request, response) => {
    const chat = chats.get(request.params["id"] ?? "");
    if (chat && !chat.stopped) {
      handle(chat, request, response);
    } else {
      problem(response, 404, "NOT_FOUND", "There is no such chat node in the flow that runs; deploy it.");
    }
  };
}

function showHistory(chat: Chat, _request: Request, response: Response): void {
  const history = chat.book.said();
  reply(response, 200, { nodeId: chat.node.id, history, count: history.length });
}

/** A person says something: it goes out to the agent. */
function sendMessage(RED: Red, chat: Chat, request: Request, response: Response): void {
  // A form of another web page can send text, but no JSON: that would need the consent of this server.
  if (!/^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "")) {
    problem(response, 415, "CONTENT_TYPE_REFUSED", "Send JSON, announced as application/json.");
    return;
  }
  // Node-RED has read the body already, and refused one over its `apiMaxLength`.
  const body = (request as Request & { body?: unknown }).body;
  const { message, id: given } = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  if (typeof message !== "string" || message.trim() === "" || Buffer.byteLength(message) > MAX_TEXT_BYTES) {
    problem(response, 400, "BODY_INVALID", `\`message\` is a text of 1 to ${MAX_TEXT_BYTES} bytes.`);
    return;
  }
  if (chat.node.wires.flat().length === 0) {
    problem(response, 409, "CHAT_NOT_CONNECTED", "The chat node is not wired to an agent: wire its output and deploy.");
    return;
  }
  const id = typeof given === "string" && given !== "" && given.length <= MAX_ID ? given : RED.util.generateId();
  const item: ChatItem = { id, type: "user", content: message, timestamp: Date.now() };
  // What is sent again because its answer was lost is not said twice.
  if (say(RED, chat, item)) {
    chat.node.send({ _msgid: RED.util.generateId(), payload: message, chatEvent: SENT, chatMessage: item });
  }
  reply(response, 200, { success: true, id });
}

function say(RED: Red, chat: Chat, item: ChatItem): boolean {
  const isNew = chat.book.say(item, chat.most);
  if (isNew) {
    tell(RED, chat);
  }
  return isNew;
}

/**
 * Tells the windows that there is something new. Only that: every editor hears it, also one that may not read chats, and
 * Node-RED keeps what it has not sent yet without a bound.
 */
function tell(RED: Red, chat: Chat): void {
  if (chat.telling) {
    return;
  }
  chat.telling = true;
  setTimeout(() => {
    chat.telling = false;
    guarded(RED, "the windows of a chat could not be told", () => {
      RED.comms.publish(`redflow/chat/${chat.node.id}`, { count: chat.book.said().length }, false);
    });
  }, TELL_AFTER_MS).unref();
}

function problem(response: Response, status: number, code: string, message: string): void {
  reply(response, status, { code, message });
}

function reply(response: Response, status: number, body: unknown): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.setHeader("cache-control", "no-store");
  response.end(JSON.stringify(body));
}
