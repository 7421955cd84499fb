// What Node-RED has said and the sidecar has not taken yet: numbered when it is first written to a socket, kept until
// its `ack`, written again after a lost socket, numbered anew for a new session. Knows nothing of sockets and
// meanings.

/** One message: its type, and the rest of its JSON after the number, with the closing brace. */
export interface Entry {
  readonly type: string;
  readonly rest: string;
  readonly bytes: number;
  /** Its number; 0 as long as no socket had it. */
  seq: number;
}

/** How much may wait, of one kind of message. */
export interface Room {
  count: number;
  bytes: number;
}

/** Messages in the order they were said. */
export class Outbox {
  private sent: Entry[] = [];
  private waiting: Entry[] = [];
  private lastSeq = 0;
  private readonly used = new Map<string, Room>();

  /** Keeps a message, unless its kind has no room for it. */
  put(type: string, rest: string, room: Room): Entry | undefined {
    const bytes = Buffer.byteLength(rest);
    const used = this.usedBy(type);
    if (used.count >= room.count || used.bytes + bytes > room.bytes) {
      return undefined;
    }
    used.count += 1;
    used.bytes += bytes;
    const entry: Entry = { type, rest, bytes, seq: 0 };
    this.waiting.push(entry);
    return entry;
  }

  /** Keeps a message of which only the newest counts: in the place of one that no socket had yet. */
  putNewest(type: string, rest: string): void {
    const at = this.waiting.findIndex((entry) => entry.type === type);
    const old = this.waiting[at];
    this.put(type, rest, { count: Infinity, bytes: Infinity });
    if (old !== undefined) {
      this.waiting.splice(at, 1, ...this.waiting.splice(-1));
      this.release(old);
    }
  }

  /** Forgets what a socket had: it was said to another sidecar. */
  abandon(): void {
    this.sent.forEach((entry) => this.release(entry));
    this.sent = [];
  }

  /** What no socket had yet, now numbered, as text. */
  writeNew(): string[] {
    const entries = this.waiting;
    this.waiting = [];
    for (const entry of entries) {
      entry.seq = this.lastSeq += 1;
      this.sent.push(entry);
    }
    return entries.map(frame);
  }

  /** The sidecar goes on with the session and got everything up to a number, taken or not: the rest as text, once more. */
  resume(received: number): string[] {
    const missing = this.sent.filter((entry) => entry.seq > received);
    return [...missing.map(frame), ...this.writeNew()];
  }

  /** The sidecar begins a new session: everything as text, with new numbers. `first` goes before all others. */
  restart(first?: { type: string; rest: string }): string[] {
    const kept = [...this.sent, ...this.waiting];
    this.sent = [];
    this.lastSeq = 0;
    this.waiting = kept;
    if (first !== undefined) {
      this.waiting = kept.filter((entry) => entry.type !== first.type || this.release(entry));
      this.put(first.type, first.rest, { count: Infinity, bytes: Infinity });
      this.waiting.unshift(...this.waiting.splice(-1));
    }
    return this.writeNew();
  }

  /** Everything up to a number has been taken; gives what that was. */
  taken(seq: number): Entry[] {
    const left = this.sent.findIndex((entry) => entry.seq > seq);
    const gone = this.sent.splice(0, left === -1 ? this.sent.length : left);
    gone.forEach((entry) => this.release(entry));
    return gone;
  }

  /** Takes back what no socket had yet; gives whether that could be done. */
  takeBack(entry: Entry): boolean {
    const at = entry.seq === 0 ? this.waiting.indexOf(entry) : -1;
    if (at === -1) {
      return false;
    }
    this.waiting.splice(at, 1);
    this.release(entry);
    return true;
  }

  /** How many of a kind have not been taken. */
  count(type: string): number {
    return this.usedBy(type).count;
  }

  private usedBy(type: string): Room {
    let used = this.used.get(type);
    if (used === undefined) {
      used = { count: 0, bytes: 0 };
      this.used.set(type, used);
    }
    return used;
  }

  /** Always `false`, so that it can be the end of a filter. */
  private release(entry: Entry): boolean {
    const used = this.usedBy(entry.type);
    used.count -= 1;
    used.bytes -= entry.bytes;
    return false;
  }
}

function frame({ type, seq, rest }: Entry): string {
  return `{"type":${JSON.stringify(type)},"seq":${seq},${rest}`;
}
