// The messages of Node-RED that the sidecar has not acknowledged yet. Numbers a message when it is sent first, keeps it
// until its ack, sends it again after a lost socket, and numbers all anew for a new session. Knows neither sockets nor the
// meaning of messages.

/** A message: its type, and the rest of its JSON after the number, with the closing brace. */
export interface Entry {
  readonly type: string;
  readonly rest: string;
  readonly bytes: number;
  /** Its number; 0 until it is sent first. */
  seq: number;
}

/** How many messages of one type may wait, and how many bytes of them. */
export interface QueueLimit {
  count: number;
  bytes: number;
}

/** No limit. */
export const UNLIMITED: QueueLimit = { count: Infinity, bytes: Infinity };

/** Messages in the order in which they were added. */
export class Outbox {
  private sent: Entry[] = [];
  private unsent: Entry[] = [];
  private lastSeq = 0;
  private readonly used = new Map<string, QueueLimit>();

  /** Adds a message; undefined if its type has reached its limit. */
  add(type: string, rest: string, limit: QueueLimit): Entry | undefined {
    const bytes = Buffer.byteLength(rest);
    const used = this.usedBy(type);
    if (used.count >= limit.count || used.bytes + bytes > limit.bytes) {
      return undefined;
    }
    used.count += 1;
    used.bytes += bytes;
    const entry: Entry = { type, rest, bytes, seq: 0 };
    this.unsent.push(entry);
    return entry;
  }

  /** Adds a message, in the place of an unsent one of the same type. */
  addLatest(type: string, rest: string): void {
    const at = this.unsent.findIndex((entry) => entry.type === type);
    const old = this.unsent[at];
    this.add(type, rest, UNLIMITED);
    if (old !== undefined) {
      this.unsent.splice(at, 1, ...this.unsent.splice(-1));
      this.release(old);
    }
  }

  /** Drops the messages that were sent, because another sidecar received them. */
  discardSent(): void {
    this.sent.forEach((entry) => this.release(entry));
    this.sent = [];
  }

  /** Numbers the unsent messages and returns their frames. */
  numberNew(): string[] {
    const entries = this.unsent;
    this.unsent = [];
    for (const entry of entries) {
      entry.seq = this.lastSeq += 1;
      this.sent.push(entry);
    }
    return entries.map(frame);
  }

  /** The frames to send when the sidecar resumes the session after the number `received`. */
  resume(received: number): string[] {
    const missing = this.sent.filter((entry) => entry.seq > received);
    return [...missing.map(frame), ...this.numberNew()];
  }

  /** The frames of all messages with new numbers, for a new session. `first` precedes all others. */
  restart(first?: { type: string; rest: string }): string[] {
    const entries = [...this.sent, ...this.unsent];
    this.sent = [];
    this.lastSeq = 0;
    this.unsent = entries;
    if (first !== undefined) {
      entries.filter(({ type }) => type === first.type).forEach((entry) => this.release(entry));
      this.unsent = entries.filter(({ type }) => type !== first.type);
      this.add(first.type, first.rest, UNLIMITED);
      this.unsent.unshift(...this.unsent.splice(-1));
    }
    return this.numberNew();
  }

  /** Drops the messages up to a number that the sidecar has acknowledged. Returns how many. */
  acknowledge(seq: number): number {
    const next = this.sent.findIndex((entry) => entry.seq > seq);
    const acknowledged = this.sent.splice(0, next === -1 ? this.sent.length : next);
    acknowledged.forEach((entry) => this.release(entry));
    return acknowledged.length;
  }

  /** Removes an unsent message. False if it was sent or removed before. */
  withdraw(entry: Entry): boolean {
    const at = entry.seq === 0 ? this.unsent.indexOf(entry) : -1;
    if (at === -1) {
      return false;
    }
    this.unsent.splice(at, 1);
    this.release(entry);
    return true;
  }

  /** How many messages of a type are unacknowledged. */
  count(type: string): number {
    return this.usedBy(type).count;
  }

  private usedBy(type: string): QueueLimit {
    let used = this.used.get(type);
    if (used === undefined) {
      used = { count: 0, bytes: 0 };
      this.used.set(type, used);
    }
    return used;
  }

  private release(entry: Entry): void {
    const used = this.usedBy(entry.type);
    used.count -= 1;
    used.bytes -= entry.bytes;
  }
}

function frame({ type, seq, rest }: Entry): string {
  return `{"type":${JSON.stringify(type)},"seq":${seq},${rest}`;
}
