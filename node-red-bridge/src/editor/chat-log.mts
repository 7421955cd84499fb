// The items of a chat window, and when they are requested. An unchanged item is not drawn again, and the log scrolls only if the
// user reads its end. Shows everything as text.

import { cut, element, untrusted } from "./dom.mjs";
import { KeyedList } from "./keyed-list.mjs";
import type { ListPart } from "./keyed-list.mjs";
import { text } from "./text.mjs";

/** An item of the history. */
export interface ChatItem {
  id: string;
  type: "user" | "agent";
  content: string;
}

/** The most characters of one item. The message in the flow has the whole text. */
const MAX_ITEM_CHARS = 20_000;

/** How many pixels above its end the log still counts as read to the end. */
const END_PX = 20;

/** The log of a chat. */
export class ChatLog {
  readonly root = element("div", { class: "redflow-chat-said", attributes: { role: "log", tabindex: "0" } });
  private readonly list = new KeyedList<ChatItem>(this.root, ({ id }) => id, (item) => new ItemView(item));

  show(items: readonly ChatItem[]): void {
    const { scrollHeight, scrollTop, clientHeight } = this.root;
    const isAtEnd = scrollHeight - scrollTop - clientHeight <= END_PX;
    this.list.show(items);
    if (isAtEnd) {
      this.root.scrollTop = this.root.scrollHeight;
    }
  }
}

class ItemView implements ListPart<ChatItem> {
  readonly root: HTMLElement;
  private readonly content = untrusted("div", "");
  private shown = "";

  constructor({ type }: ChatItem) {
    const isPerson = type === "user";
    const side = isPerson ? "redflow-chat-user" : "redflow-chat-agent";
    const speaker = element("span", { class: "redflow-unseen", text: text(isPerson ? "nodes.chat.person" : "nodes.chat.agent") });
    this.root = element("div", { class: `redflow-chat-item ${side}` }, speaker, this.content);
  }

  show({ content }: ChatItem): void {
    const next = cut(content, MAX_ITEM_CHARS);
    if (next !== this.shown) {
      this.shown = next;
      this.content.textContent = next;
    }
  }
}

/** Makes a function that sends one request at a time. Calls during a request cause one more after it. */
export function oneAtATime(request: (done: () => void) => void): () => void {
  let state: "idle" | "requesting" | "stale" = "idle";
  const send = (): void => {
    state = "requesting";
    request(() => {
      const isStale = state === "stale";
      state = "idle";
      if (isStale) {
        send();
      }
    });
  };
  return () => {
    if (state === "idle") {
      send();
    } else {
      state = "stale";
    }
  };
}
