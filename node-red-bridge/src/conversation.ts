// The protocol of `ws /bridge` above any socket: hello and welcome, numbers and acks, resume and new sessions. Owns
// the outbox and how far the sidecar's messages have been taken; never opens a socket, and knows nothing of Node-RED.

import type { BRIDGE_PROTOCOL, BridgeLimits, BridgeMessage } from "@redflow/bindings";
import { Outbox } from "./outbox";
import type { Entry, Room } from "./outbox";

/** The subprotocol. */
export const PROTOCOL: typeof BRIDGE_PROTOCOL = "redflow.bridge.v1";

/** Bounds until a `welcome` says others: the sidecar's own defaults. */
export const DEFAULT_LIMITS: BridgeLimits = {
  maxFrameBytes: 16 * 1024 * 1024,
  maxMessageBytes: 4 * 1024 * 1024,
  maxResultBytes: 256 * 1024,
  maxValueDepth: 100,
};

/** How long the ack of a tool call may wait for one that goes anyway: its reply says as much. */
const LATE_ACK_MS = 1_000;

/** An open socket. */
export interface Wire {
  send(text: string): void;
  /** Gives it up: the other side does not keep to the protocol. */
  drop(reason: string): void;
}

/** Who this Node-RED is. */
export interface Identity {
  instance: string;
  /** Since when it remembers calls: another one knows nothing of those of before. */
  boot: string;
  nodeRed: string;
  bridge: string;
}

/** A message that has a number, or that has none. */
export type Numbered = Extract<BridgeMessage, { seq: number }> & { type: Exclude<BridgeMessage["type"], "ack"> };
export type Welcome = Extract<BridgeMessage, { type: "welcome" }>;
export type Closing = Extract<BridgeMessage, { type: "closing" }>;

/** Who listens. */
export interface Listener {
  /** The socket speaks; what must be sent again has been sent. `fresh`: the sidecar knows nothing of us. */
  welcomed(welcome: Welcome, fresh: boolean): void;
  /** A message, in order, and for how many milliseconds it waited here. It is acked when this returns. */
  take(message: BridgeMessage, waited: number): void;
  /** The sidecar says why it closes. */
  closing(closing: Closing): void;
  /** The sidecar has taken something for good. */
  taken(entries: Entry[]): void;
  /** What goes before everything else in a new session. */
  opening(): { type: string; rest: string } | undefined;
}

/** What has been said between this Node-RED and the sidecar. */
export class Conversation {
  private readonly outbox = new Outbox();
  private wire: Wire | undefined;
  private speaking = false;
  private session: string | undefined;
  private taken = 0;
  private acked = 0;
  private ackPlanned = false;
  private lateAck: NodeJS.Timeout | undefined;
  private paused = false;
  /** What came while paused. Not taken, so not acked: the sidecar's own bound on what is unacked bounds it. */
  private inbox: { message: Numbered; at: number }[] = [];
  /** When what waited came for the first time, if it comes again on another socket. */
  private cameFirst = new Map<number, number>();
  limits: BridgeLimits = DEFAULT_LIMITS;

  constructor(
    private identity: Identity,
    private readonly listener: Listener,
    private readonly later: (run: () => void) => void = setImmediate,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Another instance id is another Node-RED to the sidecar: the next hello begins a new session. */
  rename(identity: Identity): void {
    this.identity = identity;
    this.session = undefined;
  }

  /** The next sidecar is another one: what was said to the one before is not for it. */
  abandon(): void {
    this.outbox.abandon();
    this.session = undefined;
  }

  /** Whether the sidecar has said `welcome` on the socket that is open. */
  get connected(): boolean {
    return this.speaking;
  }

  /** A socket is open. */
  opened(wire: Wire): void {
    this.lost();
    this.wire = wire;
    const { instance, boot, nodeRed, bridge } = this.identity;
    const known = this.session === undefined ? { received: 0 } : { session: this.session, received: this.taken };
    wire.send(JSON.stringify({ type: "hello", protocol: PROTOCOL, instance, boot, nodeRed, bridge, ...known }));
  }

  /** The socket is gone. What came and was not taken will come again. */
  lost(): void {
    this.wire = undefined;
    this.speaking = false;
    for (const { message, at } of this.inbox) {
      this.cameFirst.set(message.seq, at);
    }
    this.inbox = [];
  }

  /** Takes no numbered messages until `resume`. */
  pause(): void {
    this.paused = true;
  }

  /** Takes what came meanwhile, and goes on. */
  resume(): void {
    this.paused = false;
    while (!this.paused) {
      const next = this.inbox.shift();
      if (next === undefined) {
        break;
      }
      this.take(next.message, this.now() - next.at);
    }
  }

  /** Says something that must arrive; `undefined` if there is no room for it. */
  post(type: string, body: string, room: Room): Entry | undefined {
    const entry = this.outbox.put(type, body, room);
    if (entry !== undefined && this.speaking) {
      this.write(this.outbox.writeNew());
    }
    return entry;
  }

  /** Says something of which only the newest counts. */
  postNewest(type: string, body: string): void {
    this.outbox.putNewest(type, body);
    if (this.speaking) {
      this.write(this.outbox.writeNew());
    }
  }

  /** Takes back what no socket had yet. */
  takeBack(entry: Entry): boolean {
    return this.outbox.takeBack(entry);
  }

  /** How many messages of a type the sidecar has not taken. */
  untaken(type: string): number {
    return this.outbox.count(type);
  }

  /** Says something that only counts now. */
  say(message: object): void {
    if (this.speaking) {
      this.wire?.send(JSON.stringify(message));
    }
  }

  /** A text came. */
  heard(text: string): void {
    const message = parse(text);
    if (message === undefined) {
      this.wire?.drop("the sidecar sent something that is no message of the protocol");
      return;
    }
    if (message.type === "closing") {
      this.listener.closing(message);
    } else if (message.type === "welcome") {
      this.welcome(message);
    } else if (!this.speaking) {
      this.wire?.drop("the sidecar sent something before its welcome");
    } else if (message.type === "ack") {
      const entries = this.outbox.taken(message.seq);
      if (entries.length > 0) {
        this.listener.taken(entries);
      }
    } else if (!("seq" in message)) {
      this.listener.take(message, 0);
    } else if (this.paused || this.inbox.length > 0 || this.cameFirst.size > 0) {
      this.wait(message);
    } else {
      this.take(message, 0);
    }
  }

  private welcome(welcome: Welcome): void {
    if (this.speaking || this.wire === undefined) {
      this.wire?.drop("the sidecar said welcome twice");
      return;
    }
    if (typeof welcome.session !== "string" || !areLimits(welcome.limits)) {
      this.wire.drop("the sidecar's welcome is not one of this protocol");
      return;
    }
    const fresh = welcome.session !== this.session;
    this.limits = welcome.limits;
    this.speaking = true;
    const opening = fresh ? this.listener.opening() : undefined;
    if (!this.speaking) {
      // It has been given up: there is nothing this sidecar can be told.
      return;
    }
    if (fresh) {
      this.session = welcome.session;
      this.taken = 0;
      this.acked = 0;
      this.cameFirst.clear();
      this.write(this.outbox.restart(opening));
    } else {
      this.acked = this.taken;
      this.write(this.outbox.resume(welcome.received));
    }
    this.listener.welcomed(welcome, fresh);
  }

  /** Keeps what cannot be taken now, with the time since when it waits; takes it at once if nothing is in its way. */
  private wait(message: Numbered): void {
    const at = this.cameFirst.get(message.seq) ?? this.now();
    this.cameFirst.delete(message.seq);
    if (this.paused || this.inbox.length > 0) {
      this.inbox.push({ message, at });
    } else {
      this.take(message, this.now() - at);
    }
  }

  private take(message: Numbered, waited: number): void {
    // What came before, and was taken, comes again if its ack was lost: ack it again, that is all.
    if (message.seq > this.taken) {
      this.listener.take(message, waited);
      this.taken = message.seq;
    } else {
      this.acked = Math.min(this.acked, this.taken - 1);
    }
    if (message.type === "tool_call") {
      this.lateAck ??= setTimeout(() => {
        this.lateAck = undefined;
        this.planAck();
      }, LATE_ACK_MS).unref();
    } else {
      this.planAck();
    }
  }

  /** Acks once for everything that came in one go. */
  private planAck(): void {
    if (this.ackPlanned) {
      return;
    }
    this.ackPlanned = true;
    this.later(() => {
      this.ackPlanned = false;
      if (this.speaking && this.taken > this.acked) {
        this.acked = this.taken;
        this.say({ type: "ack", seq: this.taken });
      }
    });
  }

  private write(frames: string[]): void {
    for (const frame of frames) {
      this.wire?.send(frame);
    }
  }
}

/** A message of the sidecar, which is trusted to keep to its types, but not to be a sidecar. */
function parse(text: string): BridgeMessage | undefined {
  try {
    // What a model wrote is in there: no key of it may become a prototype in a node that merges objects.
    const message: unknown = text.includes("__proto__") ? JSON.parse(text, withoutPrototypes) : JSON.parse(text);
    const object = typeof message === "object" && message !== null ? (message as Record<string, unknown>) : {};
    const numbered = !("seq" in object) || Number.isSafeInteger(object["seq"]);
    return typeof object["type"] === "string" && numbered ? (message as BridgeMessage) : undefined;
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
