// The history of a chat, and the items that messages become in it. Follows the rules of the sidecar's own chat nodes. Pure:
// knows neither Node-RED nor a clock.

import type { ChatItem } from "@redflow/bindings";
import { isRecord } from "./record";

/** How many items a chat node keeps by default, and at most. */
export const DEFAULT_HISTORY = 100;
export const MAX_HISTORY = 1_000;
/** The most bytes of an item, and the mark at the end of a cut text. */
export const MAX_TEXT_BYTES = 512 * 1024;
const CUT_MARK = "…";
/** The most bytes of all items of one chat. */
export const MAX_CHAT_BYTES = 4 * 1024 * 1024;
/** The longest id of an item. */
export const MAX_ID = 200;
/** The value of `msg.chatEvent` on a message of a person. */
export const SENT = "message_sent";

type Fields = Record<string, unknown>;

/** Whether a message comes from an agent. The chat node does not pass it on: it would be a new question to the agent. */
export function isAnswer(message: Fields): boolean {
  return isRecord(message["agentResult"]);
}

/** Whether a message comes from the stream port of an agent. It is never a question either. */
export function isPiece(message: Fields): boolean {
  const part = message["stream"];
  return isRecord(part) && typeof part["runId"] === "string" && typeof part["type"] === "string";
}

/** The item for a message of a person; undefined if it has no payload. */
export function questionItem(message: Fields, now: number): ChatItem | undefined {
  const sent = message["chatEvent"] === SENT ? parseItem(message["chatMessage"]) : undefined;
  if (sent) {
    return sent;
  }
  const id = message["_msgid"];
  if (typeof id !== "string" || message["payload"] === undefined) {
    return undefined;
  }
  return fitItem({ id, type: "user", content: textOf(message["payload"]), timestamp: now });
}

/** The item for a message of an agent. A tool call becomes an item only if the model wrote a text with it. */
export function answerItem(message: Fields, now: number): ChatItem | undefined {
  const result = message["agentResult"];
  if (!isRecord(result) || typeof result["traceId"] !== "string") {
    return undefined;
  }
  const text = typeof result["message"] === "string" && result["message"] !== "" ? result["message"] : undefined;
  const payload = message["payload"] === undefined ? undefined : textOf(message["payload"]);
  let content: string | undefined;
  let iteration: number | undefined;
  if (result["completed"] === true) {
    // A chat may receive the model's answer and the result of the run. They get the same id, so only one is kept.
    content = text ?? payload;
    iteration = count(result["iterations"]);
  } else if (result["completed"] === false) {
    content = failureText(result, payload);
  } else {
    content = text ?? (result["action"] === "final" ? payload : undefined);
    iteration = count(result["iteration"]);
  }
  if (content === undefined) {
    return undefined;
  }
  const run = result["traceId"];
  const item: ChatItem = { id: `${run}-${iteration ?? "end"}`, type: "agent", content, timestamp: now, traceId: run };
  const lastIteration = iteration ?? count(result["iterations"]);
  return fitItem(lastIteration === undefined ? item : { ...item, iteration: lastIteration });
}

/** The reason why a run ended without an answer. */
function failureText(result: Fields, payload: string | undefined): string {
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  const error = result["error"];
  if (isRecord(error)) {
    return `${text(error["code"])}: ${text(error["message"])}`;
  }
  const reason = `(${text(result["stopReason"]) || "stopped"})`;
  return payload === undefined ? reason : `${payload}\n${reason}`;
}

/** The item that a chat window attached to its message. */
function parseItem(value: unknown): ChatItem | undefined {
  if (!isRecord(value)) {
    return undefined;
  }
  const { id, type, content, timestamp } = value;
  if (typeof id !== "string" || typeof content !== "string" || typeof timestamp !== "number") {
    return undefined;
  }
  return type === "user" || type === "agent" ? fitItem({ id, type, content, timestamp }) : undefined;
}

/** A value as text for people. */
function textOf(value: unknown): string {
  if (typeof value === "string") {
    return value;
  }
  try {
    return JSON.stringify(value, null, 2) ?? String(value);
  } catch {
    return "(a value that cannot be shown)";
  }
}

/** Cuts an item to the limits. */
function fitItem(item: ChatItem): ChatItem {
  const content = cutText(item.content, MAX_TEXT_BYTES);
  return { ...item, id: item.id.slice(0, MAX_ID), content };
}

function cutText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= maxBytes) {
    return text;
  }
  let end = maxBytes - Buffer.byteLength(CUT_MARK);
  // Cut between two characters.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) {
    end -= 1;
  }
  return bytes.toString("utf8", 0, end) + CUT_MARK;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** How many items a node keeps, by its property. An editor may write a number as text; other values mean the default. */
export function historyLimit(property: unknown): number {
  const number = typeof property === "string" && property.trim() !== "" ? Number(property) : property;
  const limit = typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : DEFAULT_HISTORY;
  return Math.min(limit, MAX_HISTORY);
}

/** The items of one chat, oldest first. Bounded in items and bytes; drops the oldest. */
export class ChatHistory {
  private entries: ChatItem[] = [];
  private bytes = 0;

  /** Adds an item. An agent's item replaces that with the same id, whose streamed text may have gaps. False if nothing changes. */
  add(item: ChatItem, limit: number): boolean {
    const at = this.entries.findIndex(({ id }) => id === item.id);
    const known = this.entries[at];
    if (known !== undefined && (item.type === "user" || item.content === known.content)) {
      return false;
    }
    this.entries.splice(known === undefined ? this.entries.length : at, 1, item);
    this.bytes += size(item) - (known === undefined ? 0 : size(known));
    this.fit(limit);
    return true;
  }

  /** Drops the oldest items beyond the limits. Answers that are written now have `liveBytes`; the newest item stays. */
  fit(limit: number, liveBytes = 0): void {
    while (this.entries.length > limit || (this.bytes + liveBytes > MAX_CHAT_BYTES && this.entries.length > 1)) {
      const oldest = this.entries.shift();
      this.bytes -= oldest ? size(oldest) : 0;
    }
  }

  items(): readonly ChatItem[] {
    return this.entries;
  }

  clear(): void {
    this.entries = [];
    this.bytes = 0;
  }
}

/** How many answers can be written at the same time in one chat. */
const MAX_LIVE = 20;

/** An answer that a model writes now. */
interface LiveAnswer {
  item: ChatItem & { iteration: number };
  attempt: unknown;
  bytes: number;
}

/** The run that a message from a stream port ends. */
export function endedRun({ stream }: Fields): string | undefined {
  const { type, runId } = isRecord(stream) ? stream : {};
  return type === "end" && typeof runId === "string" ? runId : undefined;
}

/** The answers of one chat that models write now. An answer leaves when its run ends. */
export class LiveAnswers {
  private readonly byRun = new Map<string, LiveAnswer>();

  /** Adds a piece of an answer. Returns whether the items have changed. */
  add({ stream, payload }: Fields, now: number): boolean {
    const { type, runId: run, attempt, iteration: given } = isRecord(stream) ? stream : {};
    if (type !== "text" || typeof run !== "string" || typeof payload !== "string") {
      return false;
    }
    const iteration = count(given) ?? 0;
    const known = this.byRun.get(run);
    // A new iteration or a repeated call of the model begins the text again.
    const before = known?.item.iteration === iteration && known.attempt === attempt ? known : undefined;
    if (before !== undefined && before.bytes > MAX_TEXT_BYTES) {
      return false;
    }
    const bytes = Math.min((before?.bytes ?? 0) + Buffer.byteLength(payload), MAX_TEXT_BYTES + 1);
    const whole = (before?.item.content ?? "") + payload;
    // Not every piece counts the whole text again.
    const content = bytes > MAX_TEXT_BYTES ? cutText(whole, MAX_TEXT_BYTES) : whole;
    const timestamp = known?.item.timestamp ?? now;
    this.byRun.set(run, { item: { id: `${run}-live`, type: "agent", content, timestamp, traceId: run, iteration }, attempt, bytes });
    for (const [oldest] of this.byRun) {
      if (oldest !== run && (this.byRun.size > MAX_LIVE || this.bytes > MAX_CHAT_BYTES)) {
        this.byRun.delete(oldest);
      }
    }
    return true;
  }

  /** Removes the answer of a run that has ended. Returns it with the id that the result of the run has in the history. */
  end(run: unknown): ChatItem | undefined {
    const answer = typeof run === "string" ? this.byRun.get(run) : undefined;
    if (answer === undefined) {
      return undefined;
    }
    const { item } = answer;
    this.byRun.delete(String(run));
    return fitItem({ ...item, id: `${item.traceId}-${item.iteration}` });
  }

  items(): ChatItem[] {
    return [...this.byRun.values()].map(({ item }) => item);
  }

  /** The bytes of all answers. */
  get bytes(): number {
    return [...this.byRun.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  clear(): void {
    this.byRun.clear();
  }
}

function size(item: ChatItem): number {
  return Buffer.byteLength(item.content) + item.id.length;
}
