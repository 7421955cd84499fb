// The protocol of `ws /bridge` above any socket: hello and welcome, sequence numbers and acks, resumed and new sessions.
// Owns the outbox and the number of the last message that Node-RED has handled. Never opens a socket, and knows nothing of
// Node-RED.

import type { BRIDGE_PROTOCOL, BridgeLimits, BridgeMessage } from "@redflow/bindings";
import { Outbox } from "./outbox";
import type { Entry, QueueLimit } from "./outbox";

/** The WebSocket subprotocol. */
export const PROTOCOL: typeof BRIDGE_PROTOCOL = "redflow.bridge.v1";

/** The limits before the first `welcome`: the sidecar's own defaults. */
export const DEFAULT_LIMITS: BridgeLimits = {
  maxFrameBytes: 16 * 1024 * 1024,
  maxMessageBytes: 4 * 1024 * 1024,
  maxResultBytes: 256 * 1024,
  maxValueDepth: 100,
};

/** How long the ack of a tool call may wait for another ack: the reply of the call often comes first. */
const LATE_ACK_MS = 1_000;

/** An open socket. */
export interface BridgeSocket {
  send(text: string): void;
  /** Closes the socket because the peer breaks the protocol. */
  drop(reason: string): void;
}

/** Identifies this Node-RED to the sidecar. */
export interface Identity {
  instance: string;
  /** Changes when Node-RED loses its memory of tool calls. */
  boot: string;
  nodeRed: string;
  bridge: string;
}

/** A message with a sequence number. */
export type NumberedMessage = Extract<BridgeMessage, { seq: number }> & { type: Exclude<BridgeMessage["type"], "ack"> };
export type Welcome = Extract<BridgeMessage, { type: "welcome" }>;
export type Closing = Extract<BridgeMessage, { type: "closing" }>;

/** The first message of a new session. */
export interface FirstMessage {
  type: string;
  rest: string;
}

/** Handles what a session receives. */
export interface SessionHandler {
  /** The session is established, and unacknowledged messages were sent again. A new session knows nothing of us. */
  onWelcome(welcome: Welcome, session: "new" | "resumed"): void;
  /** A message, in order, with the milliseconds it waited here. The session acks it after this returns. */
  onMessage(message: BridgeMessage, waitedMs: number): void;
  /** The sidecar closes the socket and says why. */
  onClosing(closing: Closing): void;
  /** The sidecar has acknowledged messages. */
  onAck(): void;
  /** Returns the message that precedes all others in a new session. */
  firstMessage(): FirstMessage | undefined;
}

/** The exchange between this Node-RED and the sidecar, over one socket after the other. */
export class BridgeSession {
  private readonly outbox = new Outbox();
  private socket: BridgeSocket | undefined;
  private established = false;
  private session: string | undefined;
  /** The number of the last message that was handled, and of the last that was acked. */
  private handled = 0;
  private acked = 0;
  private ackScheduled = false;
  private lateAck: NodeJS.Timeout | undefined;
  private paused = false;
  /** Messages that arrived while paused. They are not acked, so the sidecar's limit of unacked messages bounds them. */
  private inbox: { message: NumberedMessage; at: number }[] = [];
  /** When a waiting message arrived first, for the case that the next socket brings it again. */
  private firstArrival = new Map<number, number>();
  limits: BridgeLimits = DEFAULT_LIMITS;

  constructor(
    private identity: Identity,
    private readonly handler: SessionHandler,
    private readonly defer: (run: () => void) => void = setImmediate,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Changes the instance id. The sidecar sees another Node-RED, so the next hello starts a new session. */
  changeIdentity(identity: Identity): void {
    this.identity = identity;
    this.session = undefined;
  }

  /** The next sidecar is another one: drops the messages that were sent to the previous one. */
  discardSent(): void {
    this.outbox.discardSent();
    this.session = undefined;
  }

  /** Whether the sidecar has sent `welcome` on the open socket. */
  get connected(): boolean {
    return this.established;
  }

  /** Starts to use an open socket. */
  open(socket: BridgeSocket): void {
    this.disconnect();
    this.socket = socket;
    const { instance, boot, nodeRed, bridge } = this.identity;
    const known = this.session === undefined ? { received: 0 } : { session: this.session, received: this.handled };
    socket.send(JSON.stringify({ type: "hello", protocol: PROTOCOL, instance, boot, nodeRed, bridge, ...known }));
  }

  /** The socket is lost. The sidecar will send messages again that were not handled. */
  disconnect(): void {
    this.socket = undefined;
    this.established = false;
    for (const { message, at } of this.inbox) {
      this.firstArrival.set(message.seq, at);
    }
    this.inbox = [];
  }

  /** Handles no numbered messages until `resume`. */
  pause(): void {
    this.paused = true;
  }

  /** Handles the messages that arrived while paused. */
  resume(): void {
    this.paused = false;
    while (!this.paused) {
      const next = this.inbox.shift();
      if (next === undefined) {
        break;
      }
      this.handle(next.message, this.now() - next.at);
    }
  }

  /** Sends a message that must arrive; undefined if its type has reached its limit. */
  post(type: string, body: string, limit: QueueLimit): Entry | undefined {
    const entry = this.outbox.add(type, body, limit);
    if (entry !== undefined && this.established) {
      this.write(this.outbox.numberNew());
    }
    return entry;
  }

  /** Sends a message that replaces an unsent one of the same type. */
  postLatest(type: string, body: string): void {
    this.outbox.addLatest(type, body);
    if (this.established) {
      this.write(this.outbox.numberNew());
    }
  }

  /** Removes a message that was not sent yet. False if it was. */
  withdraw(entry: Entry): boolean {
    return this.outbox.withdraw(entry);
  }

  /** How many messages of a type the sidecar has not acknowledged. */
  unacknowledged(type: string): number {
    return this.outbox.count(type);
  }

  /** Sends a message without a number, which is lost if there is no connection. */
  sendNow(message: object): void {
    if (this.established) {
      this.socket?.send(JSON.stringify(message));
    }
  }

  /** Handles a text of the sidecar. */
  receive(text: string): void {
    const message = parseMessage(text);
    if (message === undefined) {
      this.socket?.drop("the sidecar sent a message that is not part of the protocol");
      return;
    }
    if (message.type === "closing") {
      this.handler.onClosing(message);
    } else if (message.type === "welcome") {
      this.welcome(message);
    } else if (!this.established) {
      this.socket?.drop("the sidecar sent a message before its welcome");
    } else if (message.type === "ack") {
      if (this.outbox.acknowledge(message.seq) > 0) {
        this.handler.onAck();
      }
    } else if (!("seq" in message)) {
      this.handler.onMessage(message, 0);
    } else if (this.paused || this.inbox.length > 0 || this.firstArrival.size > 0) {
      this.enqueue(message);
    } else {
      this.handle(message, 0);
    }
  }

  private welcome(welcome: Welcome): void {
    if (this.established || this.socket === undefined) {
      this.socket?.drop("the sidecar sent welcome twice");
      return;
    }
    if (typeof welcome.session !== "string" || !areLimits(welcome.limits)) {
      this.socket.drop("the sidecar's welcome does not fit this protocol");
      return;
    }
    const isNew = welcome.session !== this.session;
    this.limits = welcome.limits;
    this.established = true;
    const first = isNew ? this.handler.firstMessage() : undefined;
    // The handler disconnects if this sidecar cannot take the flow.
    if (!this.established) {
      return;
    }
    if (isNew) {
      this.session = welcome.session;
      this.handled = 0;
      this.acked = 0;
      this.firstArrival.clear();
      this.write(this.outbox.restart(first));
    } else {
      this.acked = this.handled;
      this.write(this.outbox.resume(welcome.received));
    }
    this.handler.onWelcome(welcome, isNew ? "new" : "resumed");
  }

  /** Keeps a message with the time of its first arrival. Handles it at once if no other message waits. */
  private enqueue(message: NumberedMessage): void {
    const at = this.firstArrival.get(message.seq) ?? this.now();
    this.firstArrival.delete(message.seq);
    if (this.paused || this.inbox.length > 0) {
      this.inbox.push({ message, at });
    } else {
      this.handle(message, this.now() - at);
    }
  }

  private handle(message: NumberedMessage, waitedMs: number): void {
    // The sidecar repeats a message if its ack was lost. Such a message only needs another ack.
    if (message.seq > this.handled) {
      this.handler.onMessage(message, waitedMs);
      this.handled = message.seq;
    } else {
      this.acked = Math.min(this.acked, this.handled - 1);
    }
    if (message.type === "tool_call") {
      this.lateAck ??= setTimeout(() => {
        this.lateAck = undefined;
        this.scheduleAck();
      }, LATE_ACK_MS).unref();
    } else {
      this.scheduleAck();
    }
  }

  /** Sends one ack for all messages of this turn of the event loop. */
  private scheduleAck(): void {
    if (this.ackScheduled) {
      return;
    }
    this.ackScheduled = true;
    this.defer(() => {
      this.ackScheduled = false;
      if (this.established && this.handled > this.acked) {
        this.acked = this.handled;
        this.sendNow({ type: "ack", seq: this.handled });
      }
    });
  }

  private write(frames: string[]): void {
    for (const frame of frames) {
      this.socket?.send(frame);
    }
  }
}

/** A message of the sidecar. Checks only that the peer is a sidecar; a sidecar keeps to the types of the contract. */
function parseMessage(text: string): BridgeMessage | undefined {
  try {
    // The text contains output of a model: none of its keys may become the prototype of an object in a node.
    const message: unknown = text.includes("__proto__") ? JSON.parse(text, withoutPrototypes) : JSON.parse(text);
    const object = typeof message === "object" && message !== null ? (message as Record<string, unknown>) : {};
    const isNumbered = !("seq" in object) || Number.isSafeInteger(object["seq"]);
    return typeof object["type"] === "string" && isNumbered ? (message as BridgeMessage) : undefined;
  } catch {
    return undefined;
  }
}

function areLimits(limits: unknown): limits is BridgeLimits {
  const given = typeof limits === "object" && limits !== null ? (limits as Record<string, unknown>) : {};
  return Object.keys(DEFAULT_LIMITS).every((key) => Number.isSafeInteger(given[key]));
}

function withoutPrototypes(key: string, value: unknown): unknown {
  return key === "__proto__" ? undefined : value;
}
