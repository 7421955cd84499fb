// What is said in a chat: which items a message becomes, and the book that keeps them. The same rules as the sidecar's own
// chat nodes have. Pure: knows no Node-RED and no clock.

import type { ChatItem } from "@redflow/bindings";

/** The items a chat node keeps unless it says otherwise, and at most. */
export const DEFAULT_HISTORY = 100;
export const MAX_HISTORY = 1_000;
/** The longest thing that is said, in bytes, and what stands where the rest was. */
export const MAX_TEXT_BYTES = 512 * 1024;
const CUT = "…";
/** Bytes of all that is said in one chat. */
export const MAX_CHAT_BYTES = 4 * 1024 * 1024;
/** The longest id of an item. */
export const MAX_ID = 200;
/** What `msg.chatEvent` is on something a person says. */
export const SENT = "message_sent";

type Fields = Record<string, unknown>;

/** Whether an agent says this: it stays in the window and never goes on, or it would be a new question to the agent. */
export function isAnswer(message: Fields): boolean {
  return isRecord(message["agentResult"]);
}

/** What a person said with a message, if anything. */
export function question(message: Fields, now: number): ChatItem | undefined {
  const shown = message["chatEvent"] === SENT ? asItem(message["chatMessage"]) : undefined;
  if (shown) {
    return shown;
  }
  const id = message["_msgid"];
  if (typeof id !== "string" || message["payload"] === undefined) {
    return undefined;
  }
  return fitted({ id, type: "user", content: textOf(message["payload"]), timestamp: now });
}

/** What an agent said, if it is something for people: of a call of a tool only the words that came with it. */
export function answer(message: Fields, now: number): ChatItem | undefined {
  const result = message["agentResult"];
  if (!isRecord(result) || typeof result["traceId"] !== "string") {
    return undefined;
  }
  const words = typeof result["message"] === "string" && result["message"] !== "" ? result["message"] : undefined;
  const payload = message["payload"] === undefined ? undefined : textOf(message["payload"]);
  let content: string | undefined;
  let iteration: number | undefined;
  if (result["completed"] === true) {
    // A chat may get the model's answer and the run's result: they are the same, by the same id.
    content = words ?? payload;
    iteration = count(result["iterations"]);
  } else if (result["completed"] === false) {
    content = ending(result, payload);
  } else {
    content = words ?? (result["action"] === "final" ? payload : undefined);
    iteration = count(result["iteration"]);
  }
  if (content === undefined) {
    return undefined;
  }
  const run = result["traceId"];
  const item: ChatItem = { id: `${run}-${iteration ?? "end"}`, type: "agent", content, timestamp: now, traceId: run };
  const of = iteration ?? count(result["iterations"]);
  return fitted(of === undefined ? item : { ...item, iteration: of });
}

/** Why a run ended without an answer. */
function ending(result: Fields, payload: string | undefined): string {
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  const error = result["error"];
  if (isRecord(error)) {
    return `${text(error["code"])}: ${text(error["message"])}`;
  }
  const why = `(${text(result["stopReason"]) || "stopped"})`;
  return payload === undefined ? why : `${payload}\n${why}`;
}

/** What a window showed when it sent the message. */
function asItem(value: unknown): ChatItem | undefined {
  if (!isRecord(value)) {
    return undefined;
  }
  const { id, type, content, timestamp } = value;
  if (typeof id !== "string" || typeof content !== "string" || typeof timestamp !== "number") {
    return undefined;
  }
  return type === "user" || type === "agent" ? fitted({ id, type, content, timestamp }) : undefined;
}

/** A value as people read it. What cannot be written is named. */
function textOf(value: unknown): string {
  if (typeof value === "string") {
    return value;
  }
  try {
    return JSON.stringify(value, null, 2) ?? String(value);
  } catch {
    return "(something that cannot be shown)";
  }
}

function fitted(item: ChatItem): ChatItem {
  const content = cut(item.content, MAX_TEXT_BYTES);
  return { ...item, id: item.id.slice(0, MAX_ID), content };
}

function cut(text: string, most: number): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= most) {
    return text;
  }
  let end = most - Buffer.byteLength(CUT);
  // Not in the middle of a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) {
    end -= 1;
  }
  return bytes.toString("utf8", 0, end) + CUT;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** How many items a node keeps; an editor may write the number as text, and what is none is what is left out. */
export function keeps(property: unknown): number {
  const number = typeof property === "string" && property.trim() !== "" ? Number(property) : property;
  const wanted = typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : DEFAULT_HISTORY;
  return Math.min(wanted, MAX_HISTORY);
}

/** What was said in one chat, oldest first. Bounded in items and bytes; the oldest are forgotten. */
export class Book {
  private items: ChatItem[] = [];
  private bytes = 0;

  /** Keeps an item, and says whether it is new: what is said again with the same id is not said twice. */
  say(item: ChatItem, most: number): boolean {
    if (this.has(item.id)) {
      return false;
    }
    this.items.push(item);
    this.bytes += size(item);
    while (this.items.length > most || (this.bytes > MAX_CHAT_BYTES && this.items.length > 1)) {
      const oldest = this.items.shift();
      this.bytes -= oldest ? size(oldest) : 0;
    }
    return true;
  }

  has(id: string): boolean {
    return this.items.some((said) => said.id === id);
  }

  said(): readonly ChatItem[] {
    return this.items;
  }

  clear(): void {
    this.items = [];
    this.bytes = 0;
  }
}

function size(item: ChatItem): number {
  return Buffer.byteLength(item.content) + item.id.length;
}
